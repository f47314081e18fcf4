//! Settings that are changed, each in the journal first, and the lease that says so to others.

use clusters::{BorrowedSettings, Error, Kept, Lease, Leased, PutBack};
use policy::steering::{Back, Proposal};
use record::observation::{Scope, Setting};
use world::Env;

pub(crate) struct Changes {
    settings: BorrowedSettings,
    /// None before it is taken, and where the cluster keeps none.
    lease: Option<Lease>,
    /// Settings that were changed, as they are now.
    ours: Kept,
}

impl Changes {
    pub(crate) fn new(settings: BorrowedSettings) -> Changes {
        Changes { settings, lease: None, ours: Kept::new() }
    }

    /// Takes the lease; `tell` hears of somebody who has it. Returns what there is to be said of it.
    pub(crate) async fn take_lease(
        &mut self,
        env: &Env,
        holder: &str,
        tell: impl FnMut(&str),
    ) -> Result<Option<String>, Error> {
        let leased = Lease::take(env, &mut self.settings, holder, tell).await?;
        let sentence = leased.sentence();
        if let Leased::Ours(lease, _) = leased {
            self.lease = Some(lease);
        }
        Ok(sentence)
    }

    /// Renews the lease where it is time.
    pub(super) async fn renew(&mut self) -> Result<(), Error> {
        match &self.lease {
            Some(lease) => lease.renew_in_time(&mut self.settings).await,
            None => Ok(()),
        }
    }

    /// Sets what is proposed, where the setting is as it was `found`, or as it was set here, and the lease is held.
    pub(super) async fn set(&mut self, proposal: &Proposal, found: &Setting) -> Result<(), Error> {
        let Proposal { setting, to, .. } = proposal;
        let found = self.ours.get(setting).unwrap_or(found).clone();
        match &self.lease {
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
        let mut refused = None;
        if let Some(back) = on_trial {
            match self.back(back).await {
                // It keeps nothing else from its end.
                Err(error @ Error::Refused { status: 400, .. }) => refused = Some(error),
                // What somebody else has changed is told of below.
                answer => drop(answer?),
            }
        }
        let ours = self.ours.clone();
        let mut done = self.put_back_but(&ours).await?;
        done.refused = done.refused.or(refused);
        Ok(done)
    }

    async fn put_back_but(&mut self, kept: &Kept) -> Result<PutBack, Error> {
        let done = self.settings.put_back(kept).await?;
        if let Some(lease) = &self.lease {
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use rest::RestRequest;
    use serde_json::json;

    use super::*;
    use crate::live::fake_node::{borrowed, kept, proposal, serve};

    /// As of a plugin that is gone.
    #[test]
    fn what_cannot_be_taken_back_keeps_neither_what_is_kept_nor_the_lease_from_its_end() {
        world::virtual_world::run(1, async |env| {
            let settings = Rc::new(RefCell::new(json!({})));
            let refuses = Rc::new(Cell::new(false));
            let (all, is_refusing) = (settings.clone(), refuses.clone());
            let answer = move |asked: &RestRequest| {
                Some(kept(&all, asked, |name| name == "limit" && is_refusing.get()))
            };
            let (url, _node) = serve(&env, answer).await;
            let (borrowed, _dir) = borrowed(&env, &url);
            let mut changes = Changes::new(borrowed);
            changes.take_lease(&env, "me", |_| {}).await.unwrap();
            let found = Setting { value: "40mb".to_owned(), scope: Scope::Default };
            for (from, to) in [("40mb", "80mb"), ("80mb", "160mb")] {
                changes.set(&proposal(from, to), &found).await.unwrap();
            }
            assert_eq!(settings.borrow().as_object().unwrap().len(), 2, "and the lease");
            refuses.set(true);
            let back = Back {
                setting: "limit".to_owned(),
                from: "160mb".to_owned(),
                to: "80mb".to_owned(),
                is_as_found: false,
            };
            let mut done = changes.keep(Some(&back)).await.unwrap();
            let settled = changes.into_settings().settle(&mut done).await;
            assert!(matches!(&settled, Err(Error::Refused { status: 400, .. })), "{settled:?}");
            let settings = settings.borrow();
            let left = settings.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
            assert_eq!(left.collect::<Vec<_>>(), [(&"limit".to_owned(), &json!("160mb"))]);
        });
    }
}
