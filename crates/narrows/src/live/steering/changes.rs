//! Settings that are changed, each in the journal first, and the lease that says so to others.

use clusters::{BorrowedSettings, Error, Kept, Lease, Leased, PutBack};
use policy::steering::{Back, Proposal};
use record::observation::{Scope, Setting};
use world::Env;

/// Changes of one cluster.
pub(crate) struct Changes {
    settings: BorrowedSettings,
    /// None before it is taken, and where the cluster keeps none.
    lease: Option<Lease>,
    /// Settings that were changed, as they are now.
    ours: Kept,
}

/// What came of asking for the lease.
pub(crate) enum Taken {
    Ours,
    /// It was another one's, of this name, who died.
    OfOneWhoDied(String),
    /// The cluster keeps none; why, in its words.
    NotKept(String),
}

impl Changes {
    pub(crate) fn new(settings: BorrowedSettings) -> Changes {
        Changes { settings, lease: None, ours: Kept::new() }
    }

    /// Takes the lease; `tell` hears of somebody who has it.
    pub(crate) async fn take_lease(
        &mut self,
        env: &Env,
        holder: &str,
        tell: impl FnMut(&str),
    ) -> Result<Taken, Error> {
        let leased = Lease::take(env, &mut self.settings, holder, tell).await?;
        Ok(match leased {
            Leased::Ours(lease, died) => {
                self.lease = Some(lease);
                died.map_or(Taken::Ours, Taken::OfOneWhoDied)
            }
            Leased::NotKept(why) => Taken::NotKept(why),
        })
    }

    /// Renews the lease where it is time.
    pub(super) async fn renew(&mut self) -> Result<(), Error> {
        match &mut self.lease {
            Some(lease) => lease.renew_in_time(&mut self.settings).await,
            None => Ok(()),
        }
    }

    /// Sets what is proposed, where the setting is as it was `found`, or as it was set here, and the lease is held.
    pub(super) async fn set(&mut self, proposal: &Proposal, found: &Setting) -> Result<(), Error> {
        let Proposal { setting, to, .. } = proposal;
        let found = self.ours.get(setting).unwrap_or(found).clone();
        match &mut self.lease {
            Some(lease) => lease.set(&mut self.settings, setting, &found, to).await?,
            None => self.settings.set(setting, &found, to).await?,
        }
        self.remember(setting, &found, to);
        Ok(())
    }

    /// Puts one setting back; a sentence where somebody else has changed it.
    pub(super) async fn back(&mut self, back: &Back) -> Result<Option<String>, Error> {
        let name = &back.setting;
        if back.is_as_found {
            self.ours.remove(name);
            return self.settings.give_back(name).await;
        }
        let Some(ours) = self.ours.get(name).cloned() else { return Ok(None) };
        let left = self.settings.set_back(name, &ours, &back.to).await?;
        if left.is_none() {
            self.remember(name, &ours, &back.to);
        }
        Ok(left)
    }

    /// Puts everything but the lease back, for good.
    pub(super) async fn put_back(&mut self) -> Result<PutBack, Error> {
        self.put_back_but(&Kept::new()).await
    }

    /// Leaves the settings as they are but for what is on trial.
    pub(super) async fn keep(&mut self, on_trial: Option<&Back>) -> Result<PutBack, Error> {
        if let Some(back) = on_trial {
            // What somebody else has changed is told of below.
            self.back(back).await?;
        }
        let ours = self.ours.clone();
        self.put_back_but(&ours).await
    }

    async fn put_back_but(&mut self, kept: &Kept) -> Result<PutBack, Error> {
        let done = self.settings.put_back(kept).await?;
        if let Some(lease) = &mut self.lease {
            lease.renew_for_the_wait(&mut self.settings).await;
        }
        Ok(done)
    }

    /// What is left to be settled, once everything is as it is to stay.
    pub(crate) fn into_settings(self) -> BorrowedSettings {
        self.settings
    }

    fn remember(&mut self, name: &str, found: &Setting, to: &str) {
        // A setting that nobody had set became persistent.
        let scope = match found.scope {
            Scope::Transient => Scope::Transient,
            Scope::Default | Scope::Persistent => Scope::Persistent,
        };
        self.ours.insert(name.to_owned(), Setting { value: to.to_owned(), scope });
    }
}
