//! The coordinating node: searches one copy of every shard, merges the hits, then fetches the documents of the best.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::failures::{Action, Component, action};
use query::{SearchRequest, Stopped, compare_hits, keep_first_of_group};
use store::Aggregated;
use world::{Task, Time};

use super::answer_budget::AnswerBudget;
use super::asked_shards::{AskedShard, ViewOfShard, asked_shards, moved_to};
use super::choice::{Chosen, Later, choose};
use super::in_flight::InFlight;
use super::point_in_time::PointInTime;
use super::preference::{Preference, Rule};
use super::replica_selection::ReplicaSelection;
use super::service::SearchService;
use crate::planted;
use crate::transport::{
    Class, Failure, HeldView, Hit, Request, Response, Result, SearchOutcome, ShardFailure,
    ShardSearch, ShardSearched, unexpected,
};

/// How long a node waits for a shard's answer, where the request does not say.
const SHARD_TIMEOUT: Duration = Duration::from_secs(120);

/// A search over some indices.
#[derive(Clone)]
pub struct SearchJob {
    /// Sorted names.
    pub indices: Vec<String>,
    /// What is searched for.
    pub request: Arc<SearchRequest>,
    /// Which copies are asked.
    pub preference: Preference,
    /// `allow_partial_search_results`
    pub allow_partial: bool,
    /// What the shards had then is searched, and not what they have now.
    pub point_in_time: Option<PointInTime>,
}

/// The answer of a shard, and the node that gave it.
pub(super) struct Answered {
    pub(super) asked: AskedShard,
    pub(super) node: String,
    pub(super) searched: ShardSearched,
}

impl Answered {
    fn failed(&self, failure: Failure) -> ShardFailure {
        self.asked.failed(Some(&self.node), failure)
    }
}

/// A task that asks a shard, and why nothing was found of that where the task ends without an answer: its node is going
/// down.
pub(super) type Asking = (ShardFailure, Task<Result<Answered, ShardFailure>>);

/// As [`super::search`]; where views are held for further searches, with where these go on.
pub(super) async fn search_shards(
    service: &Rc<SearchService>,
    job: SearchJob,
    now_ms: i64,
    held: Option<HeldView>,
) -> Result<(SearchOutcome, Vec<ViewOfShard>), Vec<ShardFailure>> {
    let began = service.core.env.now();
    let state = service.core.state();
    let settings = service.core.settings();
    let asked_shards = asked_shards(&state, &job.indices, &job.preference, service.core.name());
    {
        let mut selector = service.selector.borrow_mut();
        selector.retain(|name| state.present.contains(name));
        selector.retain_indices(state.routing.len(), |index| state.routing.contains_key(index));
    }
    let selection = ReplicaSelection::of(&settings);
    if selection == ReplicaSelection::Oracle && !service.core.env.is_virtual() {
        return Err(asked_shards.iter().map(no_oracle).collect());
    }
    let ask = ShardSearch {
        index: String::new(),
        shard: 0,
        request: job.request.clone(),
        now_ms,
        max_buckets: settings.search_max_buckets(),
        // The hits of a single shard are the hits of the search: it fetches them at once and saves a round trip.
        fetch: asked_shards.len() == 1,
        held,
    };
    let tasks: Vec<Asking> = asked_shards
        .into_iter()
        .map(|asked| {
            let ask = ShardSearch { index: asked.index.clone(), shard: asked.shard, ..ask.clone() };
            let (service2, rule) = (service.clone(), job.preference.rule.clone());
            // Counted as in flight at once, so that the choice for the next shard sees it.
            let chosen = choose(service, selection, &asked, &rule);
            let unanswered = asked.failed(None, unexpected());
            let task = service.core.env.spawn_with("searches a shard", move || async move {
                ask_copies(&service2, asked, (selection, rule), chosen, ask).await
            });
            (unanswered, task)
        })
        .collect();
    let mut gathered = Gathered::of(began, tasks, Vec::new()).await;
    if service.core.env.is_planted(planted::FAILED_SHARD_UNSAID) {
        gathered.failures.clear();
    }
    let views = if held.is_some() { Views::Opened } else { Views::LetGo };
    gathered.merge(service, &job.request, job.allow_partial, views).await
}

/// What becomes of the views that a search uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Views {
    /// They are let go once the hits are fetched.
    LetGo,
    /// They are held for further searches, unless this one fails.
    Opened,
    /// They were held before, and stay so.
    Held,
}

/// What the shards of a search answered.
pub(super) struct Gathered {
    began: Time,
    /// Those that were asked.
    shards: usize,
    answers: Vec<Answered>,
    failures: Vec<ShardFailure>,
}

impl Gathered {
    /// Waits for the answers of shards to a search that began then, beside those that have failed before.
    pub(super) async fn of(began: Time, asked: Vec<Asking>, failures: Vec<ShardFailure>) -> Self {
        let shards = asked.len() + failures.len();
        let mut gathered = Gathered { began, shards, answers: Vec::new(), failures };
        for (unanswered, task) in asked {
            match task.await {
                Ok(Ok(answered)) => gathered.answers.push(answered),
                Ok(Err(failure)) => gathered.failures.push(failure),
                Err(_) => gathered.failures.push(unanswered),
            }
        }
        gathered
    }

    /// The page of the best hits, with their documents; and where searches of views that are held go on. Fails as
    /// [`super::search`].
    pub(super) async fn merge(
        self,
        service: &Rc<SearchService>,
        request: &SearchRequest,
        allow_partial: bool,
        views: Views,
    ) -> Result<(SearchOutcome, Vec<ViewOfShard>), Vec<ShardFailure>> {
        let Gathered { began, shards, mut answers, failures } = self;
        if !failures.is_empty() && (answers.is_empty() || !allow_partial) {
            if views != Views::Held {
                free(service, &answers, &BTreeMap::new());
            }
            return Err(failures);
        }
        // In the field's order of shards, by which ties are told apart.
        answers
            .sort_by(|a, b| (a.asked.shard, &a.asked.index).cmp(&(b.asked.shard, &b.asked.index)));
        let found = || answers.iter().map(|answered| &answered.searched.hits);
        let (total, more) = request.track_total_hits.of(found().map(|hits| hits.total).sum());
        let mut outcome = SearchOutcome {
            took: Duration::ZERO,
            timed_out: found().any(|hits| hits.stopped == Stopped::OutOfTime),
            terminated_early: request
                .terminate_after
                .map(|_| found().any(|hits| hits.stopped == Stopped::EnoughFound)),
            shards,
            failures,
            total,
            more: more || found().any(|hits| hits.more),
            max_score: found().filter_map(|hits| hits.max_score).max_by(f32::total_cmp),
            hits: Vec::new(),
            aggregations: Aggregated::default(),
        };
        let aggregated = answers.iter().filter(|_| !request.aggregations.is_empty());
        for answered in aggregated {
            let (index, found) = (&answered.asked.index, &answered.searched.hits.aggregations);
            if let Err(reason) = outcome.aggregations.add(&request.aggregations, index, found) {
                let failure = Failure::new(500, "illegal_state_exception", reason);
                outcome.failures.push(answered.failed(failure));
            }
        }
        let continued = fetch_best(service, request, answers, views, &mut outcome).await;
        let refused = outcome.failures.len() == shards || !allow_partial;
        if !outcome.failures.is_empty() && refused {
            if views != Views::Held {
                continued.iter().for_each(|shard| free_view(service, &shard.node, shard.context));
            }
            return Err(outcome.failures);
        }
        outcome.took = service.core.env.now() - began;
        Ok((outcome, continued))
    }
}

fn no_oracle(asked: &AskedShard) -> ShardFailure {
    let reason =
        "narrows.search.selection is [oracle], which exists in virtual time alone; choose another";
    let failure = Failure::new(400, "illegal_argument_exception", reason);
    asked.failed(None, failure)
}

/// Asks the copies of a shard, one after another, until one answers.
async fn ask_copies(
    service: &Rc<SearchService>,
    asked: AskedShard,
    (selection, rule): (ReplicaSelection, Rule),
    mut chosen: Result<Chosen, Later>,
    ask: ShardSearch,
) -> Result<Answered, ShardFailure> {
    let Chosen { mut order, mut first } = loop {
        match chosen {
            Ok(chosen) => break chosen,
            Err(Later(when)) => service.core.env.sleep_until(when).await,
        }
        chosen = choose(service, selection, &asked, &rule);
    };
    let mut last = None;
    let mut turn = 0;
    while let Some(name) = order.get(turn).cloned() {
        turn += 1;
        let in_flight = first.take().unwrap_or_else(|| InFlight::new(service, &name));
        match ask_copy(service, in_flight, &ask).await {
            Ok(searched) => return Ok(Answered { asked, node: name, searched }),
            Err(failure) => {
                let is_final = is_requests_fault(&failure);
                last = Some((name, failure));
                if is_final {
                    break;
                }
                if turn == order.len() {
                    let (state, local) = (service.core.state(), service.core.name());
                    order.extend(moved_to(&state, &asked, &rule, local, &order));
                }
            }
        }
    }
    Err(match last {
        Some((name, failure)) => asked.failed(Some(&name), failure),
        None => {
            let AskedShard { index, shard, .. } = &asked;
            let reason = format!("[{index}][{shard}] has no started copy that may be asked");
            asked.failed(None, Failure::new(503, "no_shard_available_action_exception", reason))
        }
    })
}

/// Asks a node about what it holds.
pub(super) async fn ask(
    service: &Rc<SearchService>,
    node: &str,
    request: Request,
) -> Result<Response> {
    let address = service.core.address_of(node).ok_or_else(|| Failure::node_left(node))?;
    Ok(service.core.call(&address, Class::Search, request, SHARD_TIMEOUT).await?)
}

async fn ask_copy(
    service: &Rc<SearchService>,
    in_flight: InFlight,
    ask: &ShardSearch,
) -> Result<ShardSearched> {
    let name = in_flight.name();
    let request = Request::Search(Box::new(ask.clone()));
    let limit = match ask.request.timeout_ms {
        // The copy itself stops in time and answers with what it has found by then.
        Some(limit_ms) => SHARD_TIMEOUT + Duration::from_millis(limit_ms),
        None => SHARD_TIMEOUT,
    };
    let answer = match service.core.address_of(name) {
        None => Err(Failure::node_left(name).into()),
        Some(address) => tokio::select! {
            biased;
            answer = service.core.call(&address, Class::Search, request, limit) => answer,
            // A node that has left does not answer any more, and may not have closed its connections.
            () = service.core.has_left(name) => Err(Failure::node_left(name).into()),
        },
    };
    match answer {
        Ok(Response::Searched(searched)) => {
            in_flight.answered(searched.feedback);
            Ok(*searched)
        }
        Ok(_) => {
            in_flight.failed();
            Err(unexpected())
        }
        Err(error) => {
            let failure = Failure::from(error);
            if !is_requests_fault(&failure) {
                in_flight.failed();
            }
            Err(failure)
        }
    }
}

/// A request that does not fit the mapping fails on every other copy, too, and says nothing about the node.
fn is_requests_fault(failure: &Failure) -> bool {
    action(Component::Search, failure.error_kind()) == Action::Answer
}

/// The best hits of all shards, with their documents. A shard that fails here is listed among the failures, and its
/// hits are left out.
async fn fetch_best(
    service: &Rc<SearchService>,
    request: &SearchRequest,
    mut answers: Vec<Answered>,
    views: Views,
    outcome: &mut SearchOutcome,
) -> Vec<ViewOfShard> {
    let wanted = wanted(request, &answers);
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (answer, place) in &wanted {
        places.entry(*answer).or_default().push(*place);
    }
    if views == Views::LetGo {
        free(service, &answers, &places);
    }
    let mut fetches = Vec::new();
    let fetch = Arc::new(request.fetch());
    // Shards are not asked one after the other: what does not fit goes at once.
    let budget = Rc::new(AnswerBudget::default());
    for (answer, places) in &places {
        let answered = &mut answers[*answer];
        if let Some(fetched) = answered.searched.fetched.take() {
            fetches.push((*answer, Ok(fetched)));
            continue;
        }
        let found = places.iter().map(|place| &answered.searched.hits.hits[*place]);
        let hits: Vec<(u32, u32)> = found.map(|hit| (hit.segment, hit.doc)).collect();
        let (service2, name) = (service.clone(), answered.node.clone());
        let (context, request) = (answered.searched.context, fetch.clone());
        let budget = budget.clone();
        let task = service.core.env.spawn("fetches hits", async move {
            let context = context.ok_or_else(unexpected)?;
            match ask(&service2, &name, Request::Fetch { context, hits, request }).await? {
                Response::Fetched(found) => budget.take(found),
                _ => Err(unexpected()),
            }
        });
        fetches.push((*answer, Err(task)));
    }
    let mut documents = BTreeMap::new();
    for (answer, fetch) in fetches {
        let found = match fetch {
            Ok(found) => Ok(found),
            Err(task) => task.await.unwrap_or_else(|_| Err(unexpected())),
        };
        match found {
            Ok(found) => _ = documents.insert(answer, found.into_iter()),
            // A scroll has them on its next page.
            Err(failure) => outcome.failures.push(answers[answer].failed(failure)),
        }
    }
    let mut last = BTreeMap::new();
    for (answer, place) in wanted {
        let Some(document) = documents.get_mut(&answer).and_then(Iterator::next) else { continue };
        let answered = &answers[answer];
        last.insert(answer, place);
        outcome.hits.push(Hit {
            index: answered.asked.index.clone(),
            found: answered.searched.hits.hits[place].clone(),
            document,
            primary_term: answered.searched.primary_term,
        });
    }
    let go_on = |(at, answered): (usize, Answered)| {
        let Answered { asked, node, mut searched } = answered;
        let context = searched.context.filter(|_| views != Views::LetGo)?;
        let after = last.get(&at).map(|place| searched.hits.hits.swap_remove(*place).sort);
        Some(ViewOfShard { asked, node, context, after })
    };
    answers.into_iter().enumerate().filter_map(go_on).collect()
}

/// The hits that are wanted, best first: which answer each is in, and where there. Ties are in the order of the shards.
fn wanted(request: &SearchRequest, answers: &[Answered]) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (answer, answered) in answers.iter().enumerate() {
        all.extend((0..answered.searched.hits.hits.len()).map(|place| (answer, place)));
    }
    let hit = |wanted: &(usize, usize)| &answers[wanted.0].searched.hits.hits[wanted.1];
    all.sort_by(|a, b| compare_hits(&request.sort, hit(a), hit(b)));
    if request.collapse.is_some() {
        keep_first_of_group(&mut all, |wanted| hit(wanted).group.clone());
    }
    all.into_iter().skip(request.from).take(request.size).collect()
}

/// Frees the search contexts from which nothing is fetched.
fn free(service: &Rc<SearchService>, answers: &[Answered], used: &BTreeMap<usize, Vec<usize>>) {
    for (at, answered) in answers.iter().enumerate() {
        if let Some(context) = answered.searched.context.filter(|_| !used.contains_key(&at)) {
            free_view(service, &answered.node, context);
        }
    }
}

/// Frees a view on a node.
pub(super) fn free_view(service: &Rc<SearchService>, node: &str, context: u64) {
    let Some(address) = service.core.address_of(node) else { return };
    let service2 = service.clone();
    let freeing = async move {
        let free = Request::FreeContext(context);
        // A node that does not receive this frees the view when its keep-alive ends.
        let _ = service2.core.call(&address, Class::Search, free, SHARD_TIMEOUT).await;
    };
    service.core.env.spawn("frees a view", freeing).detach();
}
