//! TCP's congestion window: how many bytes a connection may have in flight. A pure state machine.
//!
//! | modelled | after |
//! | --- | --- |
//! | initial window, slow start by acknowledged bytes | RFC 6928, RFC 3465 without its limit, as Linux does |
//! | CUBIC with its Reno-friendly region and fast convergence | RFC 9438 |
//! | Reno | RFC 5681 |
//! | one reduction for all that is lost of one window | RFC 6582, RFC 6675 |
//! | retransmission timeout | RFC 6298, with the floor that Linux puts under the variance |
//! | growth only while the window is what limits | Linux `tcp_is_cwnd_limited` |
//! | restart after idle | Linux `tcp_cwnd_restart` |
//!
//! Not modelled: HyStart, pacing, proportional rate reduction, `tcp_cwnd_application_limited`, backing off of
//! repeated timeouts. The receiver's window is in `simulation/network/flow/sending.rs`.

use std::time::Duration;

use crate::Time;
use crate::model::{CongestionControl, Tcp};

/// RFC 9438, 5: how fast CUBIC grows, in segments a cubic second.
const CUBIC_C: f64 = 0.4;
/// RFC 9438, 4.6: what is left of the window after a loss.
const CUBIC_BETA: f64 = 0.7;
/// RFC 5681, 3.1: the same for Reno.
const RENO_BETA: f64 = 0.5;
/// The least window in segments, except after a timeout.
const MIN_SEGMENTS: f64 = 2.0;

/// CUBIC's congestion avoidance since the last loss. In segments and seconds.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Time,
    window_max: f64,
    plateau_s: f64,
    /// The window that Reno would have by now.
    reno: f64,
}

/// The congestion window of one direction of one connection.
#[derive(Debug)]
pub(crate) struct TcpWindow {
    model: Tcp,
    /// In segments, as the formulas are.
    window: f64,
    slow_start_below: f64,
    window_max: f64,
    epoch: Option<Epoch>,
    in_flight_bytes: u64,
    /// The most bytes in flight in this round trip and in the last one.
    most_in_flight_bytes: (u64, u64),
    round_ends: Time,
    last_sent: Time,
    /// When the window was last reduced. Bytes sent before that were lost from a window that has been reduced already.
    reduced_at: Option<Time>,
    round_trip: Option<RoundTrip>,
}

#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Duration,
    variance: Duration,
}

impl TcpWindow {
    pub(crate) fn new(model: Tcp) -> Self {
        TcpWindow {
            window: f64::from(model.initial_window_segments.max(1)),
            slow_start_below: f64::INFINITY,
            window_max: 0.0,
            epoch: None,
            in_flight_bytes: 0,
            most_in_flight_bytes: (0, 0),
            round_ends: Time(0),
            last_sent: Time(0),
            reduced_at: None,
            round_trip: None,
            model,
        }
    }

    /// The window, in bytes.
    pub(crate) fn window(&self) -> u64 {
        (self.window * self.segment()) as u64
    }

    /// Whether a loss has reduced it.
    pub(crate) fn has_lost(&self) -> bool {
        self.reduced_at.is_some()
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        u64::from(self.model.segment_bytes)
    }

    /// Bytes that may be sent now. A connection that was idle restarts here.
    pub(crate) fn room(&mut self, now: Time) -> u64 {
        if self.model.slow_start_after_idle && self.in_flight_bytes == 0 {
            self.restart_after_idle(now);
        }
        self.window().saturating_sub(self.in_flight_bytes)
    }

    /// `tcp_cwnd_restart`: the window halves for every timeout that passed, but not below the initial window; the slow
    /// start threshold keeps three quarters of the window as it was.
    fn restart_after_idle(&mut self, now: Time) {
        let idle = now - self.last_sent;
        let rto = self.rto();
        if self.last_sent == Time(0) || idle <= rto {
            return;
        }
        self.slow_start_below = self.slow_start_below.max(0.75 * self.window);
        let least = f64::from(self.model.initial_window_segments.max(1)).min(self.window);
        let mut left = idle.saturating_sub(rto);
        while !left.is_zero() && self.window > least {
            self.window = (self.window / 2.0).max(least);
            left = left.saturating_sub(rto);
        }
        self.epoch = None;
        // One idle time counts once.
        self.last_sent = now;
    }

    pub(crate) fn on_send(&mut self, now: Time, bytes: u64) {
        self.last_sent = now;
        self.in_flight_bytes += bytes;
        self.most_in_flight_bytes.0 = self.most_in_flight_bytes.0.max(self.in_flight_bytes);
    }

    /// `bytes` that were sent at `sent_at` are acknowledged.
    pub(crate) fn on_ack(&mut self, now: Time, bytes: u64, sent_at: Time) {
        self.measure(now - sent_at);
        let most = self.most_in_flight_bytes.0.max(self.most_in_flight_bytes.1);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        if now >= self.round_ends {
            self.most_in_flight_bytes = (self.in_flight_bytes, self.most_in_flight_bytes.0);
            self.round_ends = now + self.smoothed();
        }
        if self.reduced_at.is_some_and(|at| sent_at < at) {
            return;
        }
        let acked = bytes as f64 / self.segment();
        let window_bytes = self.window();
        if self.window < self.slow_start_below {
            if window_bytes < 2 * most {
                self.window = (self.window + acked).min(self.slow_start_below.max(self.window));
            }
        } else if most + self.segment_bytes() > window_bytes {
            self.window += match self.model.congestion_control {
                CongestionControl::Reno => acked / self.window,
                CongestionControl::Cubic => self.cubic_growth(now, acked),
            };
        }
    }

    /// `bytes` that were sent at `sent_at` are known to be lost.
    pub(crate) fn on_loss(&mut self, now: Time, bytes: u64, sent_at: Time) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        if self.reduced_at.is_none_or(|at| sent_at >= at) {
            self.reduce(now);
            self.window = self.slow_start_below;
        }
    }

    /// `bytes` are taken for lost because the retransmission timeout passed: nothing else was in flight.
    pub(crate) fn on_timeout(&mut self, now: Time, bytes: u64) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        self.reduce(now);
        self.window = 1.0;
    }

    fn reduce(&mut self, now: Time) {
        let beta = match self.model.congestion_control {
            CongestionControl::Cubic => CUBIC_BETA,
            CongestionControl::Reno => RENO_BETA,
        };
        // Fast convergence: a window that lost before it was back at its maximum leaves room to other flows.
        let converges = self.window < self.window_max;
        self.window_max = if converges { self.window * (1.0 + beta) / 2.0 } else { self.window };
        self.slow_start_below = (self.window * beta).max(MIN_SEGMENTS);
        self.reduced_at = Some(now);
        self.epoch = None;
    }

    fn cubic_growth(&mut self, now: Time, acked: f64) -> f64 {
        let (window, window_max) = (self.window, self.window_max.max(self.window));
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: now,
            window_max,
            plateau_s: ((window_max - window) / CUBIC_C).cbrt(),
            reno: window,
        });
        let alpha = if epoch.reno < epoch.window_max {
            3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA)
        } else {
            1.0
        };
        epoch.reno += alpha * acked / window;
        let epoch = *epoch;
        let at = |time: Duration| {
            CUBIC_C * (time.as_secs_f64() - epoch.plateau_s).powi(3) + epoch.window_max
        };
        if at(now - epoch.began) < epoch.reno {
            return (epoch.reno - window).max(0.0);
        }
        let target = at(now - epoch.began + self.smoothed()).clamp(window, 1.5 * window);
        (target - window) / window * acked.min(window)
    }

    /// RFC 6298, 2.
    fn measure(&mut self, sample: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => RoundTrip { smoothed: sample, variance: sample / 2 },
            Some(RoundTrip { smoothed, variance }) => RoundTrip {
                variance: variance * 3 / 4 + smoothed.abs_diff(sample) / 4,
                smoothed: smoothed * 7 / 8 + sample / 8,
            },
        });
    }

    fn smoothed(&self) -> Duration {
        self.round_trip.map_or(Duration::ZERO, |round_trip| round_trip.smoothed)
    }

    /// Retransmission timeout; one second before the first sample of the round trip.
    pub(crate) fn rto(&self) -> Duration {
        match self.round_trip {
            None => Duration::from_secs(1),
            Some(it) => it.smoothed + (4 * it.variance).max(self.model.min_rto),
        }
    }

    fn segment(&self) -> f64 {
        f64::from(self.model.segment_bytes.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Sends `bytes` over a line with a delay and no rate; answers the round trips that it took.
    fn rounds(tcp: &mut TcpWindow, now: &mut Time, mut bytes: u64) -> u32 {
        let mut rounds = 0;
        while bytes > 0 {
            let sent = tcp.room(*now).min(bytes);
            let at = *now;
            tcp.on_send(at, sent);
            *now = at + RTT;
            tcp.on_ack(*now, sent, at);
            bytes -= sent;
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn a_cold_connection_takes_seven_round_trips_for_a_megabyte_and_a_warm_one_takes_one() {
        let mut tcp = TcpWindow::new(Tcp::default());
        let mut now = Time(1);
        let took: Vec<u32> = (0..6).map(|_| rounds(&mut tcp, &mut now, 1 << 20)).collect();
        // 10 + 20 + ... + 640 segments of 1448 bytes hold 1 MB; then the window is open.
        assert_eq!(took, [7, 2, 1, 1, 1, 1]);
    }

    #[test]
    fn the_window_grows_no_further_than_it_is_used() {
        let mut tcp = TcpWindow::new(Tcp::default());
        let mut now = Time(1);
        for _ in 0..100 {
            rounds(&mut tcp, &mut now, 20_000);
        }
        assert!(tcp.window() <= 2 * 20_000 + 20_000, "{}", tcp.window());
    }

    #[test]
    fn idle_time_halves_the_window_for_each_timeout() {
        let warm = || {
            let mut tcp = TcpWindow::new(Tcp::default());
            let mut now = Time(1);
            for _ in 0..40 {
                rounds(&mut tcp, &mut now, 1 << 20);
            }
            (tcp, now)
        };
        let (mut tcp, now) = warm();
        let window = tcp.window();
        // The variance has died away: the timeout is a round trip and 200 ms. The last was sent 100 ms ago.
        assert!(tcp.rto().abs_diff(Duration::from_millis(300)) < Duration::from_millis(1));
        assert_eq!(tcp.room(now + Duration::from_millis(190)), window);
        for (idle_ms, halves) in [(210, 1), (490, 1), (510, 2), (790, 2), (810, 3)] {
            let (mut tcp, now) = warm();
            let room = tcp.room(now + Duration::from_millis(idle_ms));
            assert!(room.abs_diff(window >> halves) < 1448, "{idle_ms} ms: {room} of {window}");
        }
        let (mut tcp, now) = warm();
        assert_eq!(tcp.room(now + Duration::from_secs(60)), 14_480);
        assert_eq!(tcp.room(now + Duration::from_secs(60)), 14_480);
        let (mut tcp, now) = warm();
        tcp.model.slow_start_after_idle = false;
        assert_eq!(tcp.room(now + Duration::from_secs(60)), window);
    }

    #[test]
    fn a_window_is_reduced_once_for_all_that_it_lost() {
        for (control, left) in [(CongestionControl::Reno, 0.5), (CongestionControl::Cubic, 0.7)] {
            let model =
                Tcp { congestion_control: control, initial_window_segments: 100, ..Tcp::default() };
            let mut tcp = TcpWindow::new(model);
            tcp.on_send(Time(1), 100_000);
            for _ in 0..3 {
                tcp.on_loss(Time(100_000_000), 1448, Time(1));
            }
            assert_eq!(tcp.window(), (100.0 * left * 1448.0) as u64, "{control:?}");
            tcp.on_send(Time(100_000_001), 1448);
            tcp.on_loss(Time(200_000_000), 1448, Time(100_000_001));
            assert_eq!(tcp.window(), (100.0 * left * left * 1448.0) as u64, "{control:?}");
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment() {
        let mut tcp = TcpWindow::new(Tcp::default());
        assert_eq!(tcp.rto(), Duration::from_secs(1));
        tcp.on_send(Time(1), 14_480);
        tcp.on_timeout(Time(1_000_000_000), 14_480);
        assert_eq!(tcp.window(), 1448);
        assert_eq!(tcp.room(Time(1_000_000_000)), 1448);
    }

    /// Segments a round trip under a loss of every `1/p`-th segment.
    fn mean_window(control: CongestionControl, loss: f64) -> f64 {
        let mut tcp = TcpWindow::new(Tcp { congestion_control: control, ..Tcp::default() });
        let (mut now, mut until_loss, mut sent, mut rounds) = (Time(1), 1.0 / loss, 0.0, 0);
        while rounds < 20_000 {
            let bytes = tcp.room(now);
            tcp.on_send(now, bytes);
            let at = now;
            now = now + RTT;
            let segments = bytes as f64 / 1448.0;
            until_loss -= segments;
            if until_loss < 0.0 {
                until_loss += 1.0 / loss;
                tcp.on_ack(now, bytes - 1448, at);
                tcp.on_loss(now, 1448, at);
            } else {
                tcp.on_ack(now, bytes, at);
            }
            sent += segments;
            rounds += 1;
        }
        sent / f64::from(rounds)
    }

    #[test]
    fn under_loss_the_rate_is_what_the_formulas_say() {
        for loss in [0.01, 0.001, 0.0001] {
            // Mathis, Semke, Mahdavi, Ott (1997): sqrt(3 / 2p).
            let (got, expected) = (mean_window(CongestionControl::Reno, loss), (1.5 / loss).sqrt());
            assert!((got / expected - 1.0).abs() < 0.25, "Reno, {loss}: {got} for {expected}");
            // RFC 9438, 5.1: 1.054 (RTT / p)^(3/4) with C = 0.4, where CUBIC is above Reno.
            let cubic = 1.054 * (RTT.as_secs_f64() / loss).powf(0.75);
            let got = mean_window(CongestionControl::Cubic, loss);
            let expected = cubic.max(expected);
            assert!((got / expected - 1.0).abs() < 0.25, "CUBIC, {loss}: {got} for {expected}");
        }
    }
}
