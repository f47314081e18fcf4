//! A lease: whoever steers a cluster says so in a cluster setting, so that nobody else does at the same time.
//!
//! The setting is user-defined metadata, which every release of the field accepts and none obeys. Its value names the
//! holder and counts on; a holder whose count stands still for [`EXPIRES`] has died. Nobody's clock is asked. Two that
//! begin in the same moment both write and both read again after [`SETTLES`]: who finds the other's value stands back.
//! [`BorrowedSettings::settle`] gives it back.

use std::time::Duration;

use record::observation::{Scope, Setting};
use world::Env;

use super::settings::{BorrowedSettings, LEASE};
use crate::{Error, Result};

/// How often the lease is renewed.
pub const RENEWED: Duration = Duration::from_secs(10);
/// How long the lease stands without a renewal.
pub const EXPIRES: Duration = Duration::from_secs(35);
/// How long until another holder's value would show.
const SETTLES: Duration = Duration::from_millis(700);

/// What came of asking for the lease.
pub enum Leased {
    /// It is ours. The name of a holder that died, if there was one.
    Ours(Lease, Option<String>),
    /// The cluster keeps no such setting; why, in its words.
    NotKept(String),
}

/// A lease that is held.
pub struct Lease {
    holder: String,
    count: u64,
}

impl Lease {
    /// Takes the lease for `holder`, a name that no other holder has. Where somebody has the lease, waits to see
    /// whether that holder lives, and says so to `tell`. Fails with [`Error::Leased`] if somebody else has it and
    /// lives.
    pub async fn take(
        env: &Env,
        settings: &mut BorrowedSettings,
        holder: &str,
        mut tell: impl FnMut(&str),
    ) -> Result<Leased> {
        let mut died = None;
        if let Some(found) = settings.now(LEASE).await? {
            tell(holder_of(&found.value));
            env.sleep(EXPIRES).await;
            match settings.now(LEASE).await? {
                Some(now) if now != found => {
                    return Err(Error::Leased { holder: holder_of(&now.value).to_owned() });
                }
                Some(now) => {
                    // It is not ours to put back: whoever died wanted it gone.
                    settings.clear(LEASE, &now).await?;
                    died = Some(holder_of(&now.value).to_owned());
                }
                None => {}
            }
        }
        let mut lease = Lease { holder: holder.to_owned(), count: 0 };
        match lease.write(settings, &not_set()).await {
            Ok(()) => {}
            Err(Error::Refused { status: 400, reason, .. }) => return Ok(Leased::NotKept(reason)),
            Err(error) => return Err(error),
        }
        env.sleep(SETTLES).await;
        lease.renew(settings).await?;
        Ok(Leased::Ours(lease, died))
    }

    /// Says that the holder lives. Fails with [`Error::Leased`] if somebody else has it by now.
    pub async fn renew(&mut self, settings: &mut BorrowedSettings) -> Result<()> {
        let ours = match settings.now(LEASE).await? {
            // Of renewals that were not answered some were made, and nobody knows which.
            Some(now) if holder_of(&now.value) == self.holder => now,
            Some(_) => Setting { value: self.value(), scope: Scope::Persistent },
            // Somebody removed it, and nobody has taken it since.
            None => not_set(),
        };
        self.count += 1;
        self.write(settings, &ours).await
    }

    /// Renews it once more, where late changes are looked for before it is given back: that takes nearly as long as it
    /// stands. Not where somebody else has it by now.
    pub async fn renew_for_the_wait(&mut self, settings: &mut BorrowedSettings) -> Result<()> {
        if settings.may_come_for().is_zero() {
            return Ok(());
        }
        match self.renew(settings).await {
            Err(Error::Leased { .. }) => Ok(()),
            renewed => renewed,
        }
    }

    async fn write(&self, settings: &mut BorrowedSettings, found: &Setting) -> Result<()> {
        match settings.set(LEASE, found, &self.value()).await {
            Err(Error::ChangedMeanwhile { now, .. }) => {
                Err(Error::Leased { holder: holder_of(&now).to_owned() })
            }
            written => written,
        }
    }

    fn value(&self) -> String {
        format!("{} {}", self.holder, self.count)
    }
}

fn not_set() -> Setting {
    Setting { value: String::new(), scope: Scope::Default }
}

fn holder_of(value: &str) -> &str {
    value.rsplit_once(' ').map_or(value, |(holder, _)| holder)
}
