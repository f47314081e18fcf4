//! A lease: whoever changes settings of a cluster for a while says so in a cluster setting, so that nobody else does at
//! the same time: a hand, a probe, a run.
//!
//! The setting is user-defined metadata, which every release of the field accepts and none obeys. Its value names the
//! holder and counts on; a holder whose count stands still for [`EXPIRES`] has died. Nobody's clock is asked. Two that
//! begin in the same moment both write and both read again after [`SETTLES`]: who finds the other's value stands back.
//! The holder counts from when it sent a renewal, which is before anybody else could see it: [`Lease::set`] sends
//! nothing once the lease has expired, and a renewal is given up then. Settings are put back before it is given back.
//!
//! What remains, as no request of the field sets a cluster setting on a condition: a host that holds a renewal up may
//! make it after it was given up, over another one's value. That one finds it at its next renewal, after [`RENEWED`] at
//! most, and stands back; until then either may change a setting.

use std::cell::Cell;
use std::time::Duration;

use futures_util::lock::Mutex;
use record::observation::{Scope, Setting};
use record::units::show_seconds;
use world::{Elapsed, Env, Time};

use super::index_names::drawn;
use super::journal::Journal;
use super::settings::{
    BorrowedSettings, ClusterSettings, Journaled, LEASE, SETTINGS, check_cluster, clear, now,
    set_from,
};
use crate::live::LiveClient;
use crate::{Error, Result};

/// How often the lease is renewed.
pub const RENEWED: Duration = Duration::from_secs(10);
/// How long the lease stands without a renewal.
pub const EXPIRES: Duration = Duration::from_secs(35);
/// How often whoever waits for another holder looks whether that has given it back.
const LOOKED: Duration = Duration::from_secs(1);
/// How long until another holder's value would show.
const SETTLES: Duration = Duration::from_millis(700);

/// What came of asking for the lease.
pub enum Leased {
    /// It is ours. The name of a holder that died, if there was one.
    Ours(Lease, Option<String>),
    /// The cluster keeps no such setting; why, in its words.
    NotKept(String),
}

impl Leased {
    /// What people are told of it; none where it was nobody else's.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Leased::Ours(_, None) => None,
            Leased::Ours(_, Some(other)) => Some(format!(
                "{other} changed settings of that cluster and died: what it changed counts as found here; once this one \
                 has ended, `narrows restore` where it ran puts that back"
            )),
            Leased::NotKept(why) => Some(format!(
                "the cluster keeps none ({why}), so that nothing hinders another one from changing its settings as well: \
                 see that nobody does"
            )),
        }
    }
}

/// How a holder is called, a name unlike any other: its run, and a number that was drawn.
pub fn lease_holder(run: &str) -> String {
    format!("{run}-{}-{:08x}", std::process::id(), drawn())
}

/// What people are told while it is to show whether another holder lives.
pub fn lease_wait_sentence(other: &str) -> String {
    let expires = show_seconds(EXPIRES.as_secs_f64());
    format!("{other} changes settings of that cluster; whether it lives will show within {expires}")
}

/// A lease that is held.
pub struct Lease {
    env: Env,
    holder: String,
    count: Cell<u64>,
    /// When the last renewal was sent that was answered.
    renewed: Cell<Time>,
    /// Whose turn it is to renew it: whoever changes something may come while it is renewed.
    turn: Mutex<()>,
}

impl Lease {
    /// Takes the lease for `holder`, a name that no other holder has. Where somebody has the lease, waits to see
    /// whether that holder lives, no longer than until it is given back, and says so to `tell`. Fails with
    /// [`Error::Leased`] if somebody else has it and lives.
    pub async fn take(
        env: &Env,
        there: &mut impl Journaled,
        holder: &str,
        mut tell: impl FnMut(&str),
    ) -> Result<Leased> {
        let mut died = None;
        if let Some(found) = now(there.client(), LEASE).await? {
            tell(holder_of(&found.value));
            let client = there.client();
            match outwaited(client, async || now(client, LEASE).await).await? {
                Some(now) if now != found => {
                    return Err(Error::Leased { holder: holder_of(&now.value).to_owned() });
                }
                Some(now) => {
                    // It is not ours to put back: whoever died wanted it gone.
                    clear(there.client(), LEASE, &now).await?;
                    died = Some(holder_of(&now.value).to_owned());
                }
                None => {}
            }
        }
        let (renewed, turn) = (Cell::new(env.now()), Mutex::new(()));
        let (env, holder) = (env.clone(), holder.to_owned());
        let lease = Lease { env, holder, count: Cell::new(0), renewed, turn };
        match lease.renew(there).await {
            Ok(()) => Ok(Leased::Ours(lease, died)),
            Err(Error::Refused { status: 400, reason, .. }) => Ok(Leased::NotKept(reason)),
            Err(error) => Err(error),
        }
    }

    /// Says that the holder lives. Fails with [`Error::Leased`] if somebody else has it by now. It is given up where it
    /// is not answered before the lease expires: sent to one more host then, it might come over another one's.
    pub async fn renew(&self, there: &mut impl Journaled) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.renew_now(there).await
    }

    async fn renew_now(&self, there: &mut impl Journaled) -> Result<()> {
        let left = self.left();
        // One that has expired is read first, and nobody may have taken it.
        let limit = if left.is_zero() { EXPIRES - RENEWED } else { left };
        in_time(self.env.timeout(limit, self.count_on(there)).await)
    }

    async fn count_on(&self, there: &mut impl Journaled) -> Result<()> {
        let mut found = now(there.client(), LEASE).await?;
        if found.is_none() {
            check_cluster(there.client(), there.cluster_uuid()).await?;
            // Nobody has taken it, or somebody removed it: another one may take it in the same moment.
            self.write(there, &not_set()).await?;
            self.env.sleep(SETTLES).await;
            found = now(there.client(), LEASE).await?;
        }
        let ours = match found {
            // Of renewals that were not answered some were made, and nobody knows which.
            Some(now) if holder_of(&now.value) == self.holder => now,
            Some(_) => Setting { value: self.value(), scope: Scope::Persistent },
            None => not_set(),
        };
        self.count.set(self.count.get() + 1);
        let sent = self.env.now();
        self.write(there, &ours).await?;
        self.renewed.set(sent);
        Ok(())
    }

    /// As [`Lease::renew`], where it is time for that.
    pub async fn renew_in_time(&self, there: &mut impl Journaled) -> Result<()> {
        let _turn = self.turn.lock().await;
        match self.env.now() - self.renewed.get() >= RENEWED {
            true => self.renew_now(there).await,
            false => Ok(()),
        }
    }

    /// Renews it once more, where late changes are looked for before it is given back: that takes nearly as long as it
    /// stands. Where that fails, or somebody else has it by now, they are looked for all the same.
    pub async fn renew_for_the_wait(&self, settings: &mut BorrowedSettings) {
        if !settings.may_come_for().is_zero() {
            self.renew(settings).await.ok();
        }
    }

    /// As [`BorrowedSettings::set`], as long as the lease is held: it is renewed before where it is time, and read
    /// where it is not, and a change that is not answered before it expires is given up, so that it is sent to no
    /// further host then. Fails with [`Error::Leased`] if somebody else has it by now.
    pub async fn set(
        &self,
        settings: &mut BorrowedSettings,
        name: &str,
        found: &Setting,
        to: &str,
    ) -> Result<()> {
        self.renew_in_time(settings).await?;
        self.while_held(async {
            self.check(&ClusterSettings::ask(settings.client()).await?)?;
            settings.set(name, found, to).await
        })
        .await
    }

    /// What comes of a change. It is given up once the lease may be another one's, and is sent to no further host then.
    pub(super) async fn while_held<T>(&self, change: impl Future<Output = Result<T>>) -> Result<T> {
        let left = self.left();
        if left.is_zero() {
            return in_time(Err(Elapsed(EXPIRES)));
        }
        in_time(self.env.timeout(left, change).await)
    }

    /// Fails if somebody else has it by now. Our clock stands still while the machine sleeps: by it a lease may stand
    /// that has expired long ago.
    pub(super) fn check(&self, now: &ClusterSettings) -> Result<()> {
        match now.effective(LEASE) {
            Some((_, value)) if holder_of(value) != self.holder => {
                Err(Error::Leased { holder: holder_of(value).to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// How long nobody else can have taken it.
    fn left(&self) -> Duration {
        self.renewed.get() + EXPIRES - self.env.now()
    }

    async fn write(&self, there: &mut impl Journaled, found: &Setting) -> Result<()> {
        match set_from(there, LEASE, found, &self.value()).await {
            Err(Error::ChangedMeanwhile { now, .. }) => {
                Err(Error::Leased { holder: holder_of(&now).to_owned() })
            }
            written => written,
        }
    }

    fn value(&self) -> String {
        format!("{} {}", self.holder, self.count.get())
    }
}

/// Before the settings in the journal of a run that died are put back: waits to see whether another holder lives, where
/// there is a lease of one, and says so to `tell`. Fails with [`Error::Leased`] if it does. What it found is what that
/// run had set, and it goes back there at its end, when the journal would be gone.
pub async fn check_nobody_steers(
    client: &LiveClient,
    journal: &Journal,
    tell: impl FnOnce(&str),
) -> Result<()> {
    if !journal.has_changed(|name| name != LEASE) {
        return Ok(());
    }
    let held = async || -> Result<Option<String>> {
        let there = ClusterSettings::ask(client).await?;
        let held = there.effective(LEASE);
        let is_others = |(scope, value): &(Scope, &String)| {
            !journal.has_set(*scope, LEASE, Some(value.as_str()))
        };
        Ok(held.filter(is_others).map(|(_, value)| value.clone()))
    };
    let Some(found) = held().await? else { return Ok(()) };
    tell(holder_of(&found));
    match outwaited(client, held).await? {
        Some(now) if now != found => Err(Error::Leased { holder: holder_of(&now).to_owned() }),
        _ => Ok(()),
    }
}

/// What is held once [`EXPIRES`] is over; none as soon as it is given back. That looks at it fail meanwhile says
/// nothing of the holder.
async fn outwaited<T>(
    client: &LiveClient,
    held: impl AsyncFn() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let until = client.now() + EXPIRES;
    loop {
        client.sleep_until(until.min(client.now() + LOOKED)).await;
        match held().await {
            Ok(None) => return Ok(None),
            last if client.now() >= until => return last,
            _ => {}
        }
    }
}

/// What was answered to a change, unless that took too long.
fn in_time<T>(answer: std::result::Result<Result<T>, Elapsed>) -> Result<T> {
    answer.unwrap_or_else(|elapsed| {
        Err(Error::Timeout {
            address: "the cluster".to_owned(),
            method: "PUT".to_owned(),
            path: SETTINGS.to_owned(),
            limit: elapsed.0,
        })
    })
}

fn not_set() -> Setting {
    Setting { value: String::new(), scope: Scope::Default }
}

fn holder_of(value: &str) -> &str {
    value.rsplit_once(' ').map_or(value, |(holder, _)| holder)
}
