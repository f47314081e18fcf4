//! The hand: it looks, asks the policy, and does what that says.

use std::pin::pin;
use std::rc::Rc;

use anyhow::Context;
use clusters::live::{Depth, LiveClient, UserClock};
use clusters::{Error, LEASE_RENEWED};
use insight::diagnosis::{Onlooker, Series, diagnose, tells_of_recoveries};
use policy::steering::{Back, Decision, Foreground, Look, Steering};
use record::observation::Observation;
use record::units::show_seconds;
use world::Time;

use super::account::{Account, Entry, SILENT};
use super::changes::Changes;
use super::guard::GuardQuery;
use crate::live::{Looking, is_hopeless, usage};

/// Looks that a verdict rests on, at most.
const LOOKS: usize = 20;
/// So many looks in a row that fail are as users who suffer.
const MISSED: u32 = 2;

/// How steering ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time is over.
    Over,
    /// The policy says so, or somebody else is at work; in words.
    Stopped(String),
}

/// Looks at a cluster and steers it.
pub(crate) struct Hand {
    looking: Looking,
    onlooker: Onlooker,
    steering: Steering,
    users: UserClock,
    /// What is beside looks is asked by another client.
    client: Rc<LiveClient>,
    guard: Option<GuardQuery>,
    /// What was decided to be put back, and was not answered yet.
    owed: Option<(Back, Decision)>,
    /// Whether it was told what users bear before anything is changed.
    is_baseline_told: bool,
}

impl Hand {
    pub(crate) fn new(
        looking: Looking,
        client: LiveClient,
        steering: Steering,
        guard: Option<GuardQuery>,
    ) -> Hand {
        let (onlooker, users) = (Onlooker::default(), UserClock::default());
        let client = Rc::new(client);
        let (owed, is_baseline_told) = (None, false);
        Hand { looking, onlooker, steering, users, client, guard, owed, is_baseline_told }
    }

    pub(crate) fn now(&self) -> Time {
        self.looking.sampler.client().now()
    }

    /// Looks before anything is steered.
    pub(super) async fn first_look(&mut self) -> anyhow::Result<Observation> {
        self.looking.look(Depth::Deep).await?;
        self.looking.series().last().cloned().context("a look was made")
    }

    /// When the time of its looks begins.
    pub(super) fn began(&self) -> Time {
        self.looking.began()
    }

    /// All that it saw.
    pub(super) fn series(&self) -> Series<'_> {
        self.looking.series()
    }

    /// What was decided so far.
    pub(crate) fn steering(&self) -> &Steering {
        &self.steering
    }

    /// What does not stay where the rest does: what is owed, or what is on trial.
    pub(crate) fn not_kept(&self) -> Option<Back> {
        self.owed.as_ref().map(|(back, _)| back.clone()).or_else(|| self.steering.on_trial())
    }

    /// Steers until `ends`, or for ever. Without `changes` it only tells what it would do. `seen` is called after each
    /// look that counts.
    pub(crate) async fn steer(
        &mut self,
        mut changes: Option<&mut Changes>,
        ends: Option<Time>,
        account: &mut Account<'_>,
        seen: &mut dyn FnMut(&Series<'_>, f64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ending> {
        let mut missed = 0;
        loop {
            if ends.is_some_and(|ends| self.now() >= ends) {
                return Ok(Ending::Over);
            }
            if let Some(changes) = changes.as_deref_mut()
                && let Some(ending) = self.pay(changes, account).await?
            {
                return Ok(ending);
            }
            match self.look_on_lease(changes.as_deref_mut()).await {
                // What is owed comes first: nothing else is decided meanwhile.
                Ok(_) if self.owed.is_some() => missed = 0,
                Ok(Some((look, t_ms))) => {
                    missed = 0;
                    seen(&self.looking.series(), t_ms)?;
                    let decision = self.steering.next(&look);
                    if !self.is_baseline_told
                        && let Some(text) = self.steering.baseline()
                    {
                        self.is_baseline_told = true;
                        account.tell(Entry::said("before any change", text))?;
                        let series = self.looking.series();
                        let now = |name: &str| series.setting(name).map(|now| now.value.as_str());
                        for sentence in self.steering.bounds().passed(now) {
                            account.tell(Entry::said("leave", sentence))?;
                        }
                    }
                    let ending = self.carry_out(&look, decision, changes.as_deref_mut(), account);
                    if let Some(ending) = ending.await? {
                        return Ok(ending);
                    }
                }
                unseen => {
                    match unseen {
                        Err(error) => self.trouble(error, account)?,
                        Ok(_) => account.tell(Entry::said("wait", too_little()))?,
                    }
                    missed += 1;
                    if missed >= MISSED && self.owed.is_none() && changes.is_some() {
                        missed = 0;
                        self.owe();
                    }
                }
            }
            // The end may come before the next look.
            let client = self.client.clone();
            let over = async {
                match ends {
                    Some(ends) => client.sleep_until(ends).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.looking.pause() => {}
                () = over => {}
            }
        }
    }

    /// Gives way as soon as the cluster answers again.
    fn owe(&mut self) {
        let decision = self.steering.unseen(self.now());
        if let Decision::GiveWay(back, _) = &decision {
            self.owed = Some((back.clone(), decision));
        }
    }

    /// Renews the lease where it is time, and puts back what is owed.
    async fn pay(
        &mut self,
        changes: &mut Changes,
        account: &mut Account<'_>,
    ) -> anyhow::Result<Option<Ending>> {
        match changes.renew().await {
            Ok(()) => {}
            Err(error @ Error::Leased { .. }) => {
                return Ok(Some(Ending::Stopped(error.to_string())));
            }
            Err(error) => self.trouble(error, account)?,
        }
        self.put_back(changes, account).await
    }

    /// Puts back what is owed; it is said once that is answered.
    async fn put_back(
        &mut self,
        changes: &mut Changes,
        account: &mut Account<'_>,
    ) -> anyhow::Result<Option<Ending>> {
        let Some((back, decision)) = self.owed.clone() else { return Ok(None) };
        match changes.back(&back).await {
            Ok(None) => {
                self.owed = None;
                account.tell(Entry::Decided { decision, is_done: true })?;
            }
            Ok(Some(left)) => return Ok(Some(Ending::Stopped(left))),
            Err(error) => self.trouble(error, account)?,
        }
        Ok(None)
    }

    /// Reports an error that may pass, so that the hand waits; answers with an error for which waiting does not help.
    fn trouble(&self, error: Error, account: &mut Account<'_>) -> anyhow::Result<()> {
        if is_hopeless(&error) {
            return Err(usage(error));
        }
        // Nothing can be changed on a cluster that does not answer.
        let goes_back = self.owed.as_ref().map_or_else(String::new, |(back, _)| {
            format!(", and {} goes back to {} as soon as it does", back.setting, back.to)
        });
        account.tell(Entry::said("wait", format!("{SILENT}{goes_back}: {error}")))
    }

    /// Looks, and renews the lease where that takes long. None where users were unseen for too long, or where nobody
    /// knows what recovers.
    async fn look_on_lease(
        &mut self,
        mut changes: Option<&mut Changes>,
    ) -> Result<Option<(Look, f64)>, Error> {
        let client = self.client.clone();
        let began = client.now();
        let looked = {
            let mut look = pin!(self.look());
            loop {
                tokio::select! {
                    biased;
                    looked = &mut look => break looked,
                    () = client.sleep_until(client.now() + LEASE_RENEWED) => {}
                }
                let Some(changes) = changes.as_deref_mut() else { continue };
                // A renewal that fails is tried again after the look, and told then.
                let mut renewal = pin!(changes.renew());
                tokio::select! {
                    biased;
                    looked = &mut look => {
                        drop(renewal.await);
                        break looked;
                    }
                    _ = &mut renewal => {}
                }
            }
        };
        let is_late = client.now() - began > LEASE_RENEWED;
        let is_told = self.looking.series().last().is_some_and(tells_of_recoveries);
        looked.map(|look| Some(look).filter(|_| is_told && !is_late))
    }

    async fn look(&mut self) -> Result<(Look, f64), Error> {
        let at = self.now();
        let t_ms = self.looking.try_look(Depth::Full).await?;
        // These questions have a deadline of their own: a slow look takes none of their time.
        let _under_way = self.client.begin_look();
        let times = self.users.ask(&self.client).await?;
        let (probes_ms, probes_failed, probe_error) =
            self.guard.as_ref().map_or_else(Default::default, |guard| guard.take());
        let users = Foreground {
            search_ms: times.search_ms,
            indexing_ms: times.indexing_ms,
            rejected: times.rejected,
            probes_ms,
            probes_failed,
            probe_error,
            ..Foreground::default()
        };
        let series = self.looking.series();
        // What was seen before the last change speaks of other settings.
        let since_ms = t_ms - (at - self.steering.settled_since()).as_secs_f64() * 1e3;
        let recent = series.looks().iter().copied().filter(|(ms, _)| *ms >= since_ms - 0.5);
        let diagnosis = diagnose(&Series::new(recent).tail(LOOKS));
        Ok((
            self.onlooker.look(at, &series, self.looking.settings_are_new(), &diagnosis, users),
            t_ms,
        ))
    }

    async fn carry_out(
        &mut self,
        look: &Look,
        decision: Decision,
        changes: Option<&mut Changes>,
        account: &mut Account<'_>,
    ) -> anyhow::Result<Option<Ending>> {
        let is_done = changes.is_some();
        let mut ending = None;
        match (&decision, changes) {
            (Decision::Look, _) => return Ok(None),
            (Decision::Wait(_) | Decision::Keep(_) | Decision::Leave(_), _) => {}
            (Decision::Stop(why), _) => ending = Some(Ending::Stopped(why.clone())),
            (Decision::Set(_), None) => self.steering.withdraw(),
            (Decision::Set(proposal), Some(changes)) => {
                let lever = look.levers.iter().find(|lever| lever.name == proposal.setting);
                let Some(lever) = lever else { return Ok(None) };
                let set = match changes.renew().await {
                    Ok(()) => changes.set(proposal, &lever.setting).await,
                    error @ Err(Error::Leased { .. }) => error,
                    // Nothing was sent.
                    Err(error) => {
                        self.steering.withdraw();
                        self.trouble(error, account)?;
                        return Ok(None);
                    }
                };
                match set {
                    Ok(()) => {}
                    Err(error @ (Error::ChangedMeanwhile { .. } | Error::Leased { .. })) => {
                        self.steering.withdraw();
                        ending = Some(Ending::Stopped(error.to_string()));
                    }
                    Err(error @ Error::Refused { status: 400, .. }) => {
                        self.steering.leave(&proposal.setting);
                        account.tell(Entry::said("leave", error.to_string()))?;
                        return Ok(None);
                    }
                    // It may have been made, or be made yet.
                    Err(error) => {
                        self.trouble(error, account)?;
                        self.owe();
                        return Ok(None);
                    }
                }
            }
            // Where users suffer, the cluster may be too busy to answer at once.
            (Decision::TakeBack(_, back) | Decision::GiveWay(back, _), Some(changes)) => {
                self.owed = Some((back.clone(), decision.clone()));
                return self.put_back(changes, account).await;
            }
            (Decision::TakeBack(..) | Decision::GiveWay(..), None) => {}
        }
        if !matches!(&ending, Some(Ending::Stopped(_))) {
            account.tell(Entry::Decided { decision, is_done })?;
        }
        Ok(ending)
    }
}

/// Why a look does not count.
fn too_little() -> String {
    let most = show_seconds(LEASE_RENEWED.as_secs_f64());
    format!("the cluster does not say what recovers, or a look took longer than {most}")
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use policy::steering::{Bounds, Lever, Marks, Role};
    use record::observation::{Scope, Setting};
    use rest::RestRequest;
    use serde_json::json;

    use super::*;
    use crate::live::fake_node::{CALM, borrowed, client, kept, looking, proposal, serve};

    /// A look is due each second.
    #[test]
    fn its_time_is_over_before_the_next_look() {
        world::virtual_world::run(1, async |env| {
            let answer = |asked: &RestRequest| match asked.path.starts_with("/_cluster/settings") {
                true => Some(kept(&RefCell::new(json!({})), asked, |_| false)),
                false => Some(CALM.to_owned()),
            };
            let (url, _node) = serve(&env, answer).await;
            let steering = Steering::new(env.now(), Bounds::default(), Marks::default());
            let mut hand = Hand::new(looking(&env, &url).await, client(&env, &url), steering, None);
            let mut write = |_: &Entry| Ok(());
            let mut account = Account::new(&mut write);
            let ends = env.now() + Duration::from_millis(500);
            let ending = hand.steer(None, Some(ends), &mut account, &mut |_, _| Ok(())).await;
            assert_eq!((ending.unwrap(), env.now()), (Ending::Over, ends));
        });
    }

    /// What is set is kept and told; everything else hangs where that is wanted.
    #[test]
    fn the_lease_is_renewed_beside_a_look_that_hangs_and_nothing_is_set_without_it() {
        world::virtual_world::run(1, async |env| {
            let settings = Rc::new(RefCell::new(json!({})));
            let (hangs, renewal_hangs) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
            let (all, is_hanging) = (settings.clone(), hangs.clone());
            let change_hangs = renewal_hangs.clone();
            let answer = move |asked: &RestRequest| {
                if !asked.path.starts_with("/_cluster/settings") {
                    return (!is_hanging.get()).then(|| CALM.to_owned());
                }
                if asked.method == "PUT" && change_hangs.take() {
                    return None;
                }
                Some(kept(&all, asked, |_| false))
            };
            let (url, _node) = serve(&env, answer).await;
            let steering = Steering::new(env.now(), Bounds::default(), Marks::default());
            let looking = looking(&env, &url).await;
            let mut hand = Hand::new(looking, client(&env, &url), steering, None);
            let (borrowed, _dir) = borrowed(&env, &url);
            let mut changes = Changes::new(borrowed);
            changes.take_lease(&env, "me", |_| {}).await.unwrap();
            let taken = settings.borrow().clone();
            assert!(taken.to_string().contains("\"me "), "{taken}");
            hangs.set(true);
            assert!(hand.look_on_lease(Some(&mut changes)).await.is_err());
            assert_ne!(*settings.borrow(), taken, "nobody could tell that it lives");
            let proposal = proposal("40mb", "80mb");
            let found = Setting { value: "40mb".to_owned(), scope: Scope::Default };
            let lever = Lever {
                name: "limit".to_owned(),
                role: Role::Rate,
                setting: found.clone(),
                most: None,
                later_only: false,
            };
            let look = Look {
                at: env.now(),
                moved_bytes: 0,
                replayed_ops: 0,
                active: Vec::new(),
                waiting: 0,
                targets: 0,
                passes_in: Duration::ZERO,
                verdicts: Vec::new(),
                levers: vec![lever],
                resting: Vec::new(),
                settings_are_new: true,
                foreground: Foreground::default(),
            };
            // A renewal that is not answered: the change that it comes before would be.
            env.sleep(LEASE_RENEWED).await;
            renewal_hangs.set(true);
            let held = settings.borrow().clone();
            let mut said = Vec::new();
            let mut write = |entry: &Entry| {
                said.push(entry.text());
                Ok(())
            };
            let mut account = Account::new(&mut write);
            let set = Decision::Set(proposal.clone());
            let ending = hand.carry_out(&look, set, Some(&mut changes), &mut account).await;
            assert_eq!((ending.unwrap(), &*settings.borrow()), (None, &held));
            assert!(said.len() == 1 && said[0].contains("does not answer"), "{said:?}");
            // What goes back once it answers is told once, whatever its hosts say meanwhile.
            said.clear();
            let mut write = |entry: &Entry| {
                said.push(entry.text());
                Ok(())
            };
            let mut account = Account::new(&mut write);
            let silent = |reason: &str| Error::NotJson { path: "/".into(), reason: reason.into() };
            hand.trouble(silent("one"), &mut account).unwrap();
            let back = Back {
                setting: "limit".to_owned(),
                from: "80mb".to_owned(),
                to: "40mb".to_owned(),
                is_as_found: true,
            };
            let decision = Decision::GiveWay(back.clone(), "it is silent".to_owned());
            hand.owed = Some((back, decision));
            for reason in ["one", "another", "one"] {
                hand.trouble(silent(reason), &mut account).unwrap();
            }
            let expected = "wait: the cluster does not answer, and limit goes back to 40mb as soon as it does: ";
            assert!(said.len() == 2 && said[1].starts_with(expected), "{said:?}");
            for held in settings.borrow_mut().as_object_mut().unwrap().values_mut() {
                *held = json!("they 1");
            }
            let theirs = settings.borrow().clone();
            env.sleep(LEASE_RENEWED).await;
            let refused = changes.set(&proposal, &found).await;
            assert!(matches!(refused, Err(Error::Leased { .. })), "{refused:?}");
            assert_eq!(*settings.borrow(), theirs);
        });
    }
}
