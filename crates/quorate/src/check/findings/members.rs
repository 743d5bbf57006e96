//! Of one member of a group, by what it reports of itself.

use super::{finding, slow_disk, Finding, Weight, SYNC_MAX};
use crate::remote::{recent_fault, NodeSurvey, CERTIFICATE_DAYS, SYNCED};
use crate::view::table::human_age;
use quorate_live::page;
use quorate_live::port::{LogReport, OwnReport};
use std::time::Duration;

/// Fewer syncs say nothing about a disk.
const SYNCS_MIN: u64 = 100;
/// One sync of a hundred may take so long: commits that wait for it are felt.
const TAIL_MAX: Duration = Duration::from_millis(50);

pub fn of_member(node: &NodeSurvey) -> Vec<Finding> {
    let Some(own) = &node.own else { return Vec::new() };
    let mut found = Vec::new();
    state(node, own, &mut found);
    disk(&own.log, &mut found);
    lag(node, &mut found);
    if let Some(days) = own.certificate_days.filter(|days| *days <= CERTIFICATE_DAYS) {
        let (weight, what) = match days {
            ..0 => (Weight::Error, "its certificate has expired".to_owned()),
            days => (Weight::Warning, format!("its certificate expires in {days} days")),
        };
        // A logger takes no SQL.
        let read = match node.member.as_ref().is_some_and(|member| member.role == "logger") {
            true => "systemctl restart quorate-logger",
            false => "FLUSH SSL on that server",
        };
        let advice = format!("renew it, then {read}, before the connections of the group end");
        found.push(finding(weight, what, advice));
    }
    if let Some(fault) = recent_fault(own) {
        let ago = human_age(fault.seconds_ago);
        found.push(finding(
            Weight::Warning,
            format!("it had an error {ago} ago: {}", fault.message),
            concat!("see its error log, and ", page!("docs/run/troubles.md")),
        ));
    }
    found
}

fn state(node: &NodeSurvey, own: &OwnReport, found: &mut Vec<Finding>) {
    let what = match &*node.state {
        _ if node.is_well() => None,
        SYNCED => Some("it is Synced, but takes no writes".to_owned()),
        other => Some(format!("it is {other}, not Synced")),
    };
    found.extend(what.map(|what| {
        let advice = "quorate status says why; change a group when all its members are Synced";
        finding(Weight::Error, what, advice)
    }));
    if let Some(disputed) = &own.disputed {
        found.push(finding(
            Weight::Error,
            format!("others say that it is an older state of itself: {disputed}"),
            concat!(
                "if an old image or backup of its log was restored, it must not vote: ",
                page!("docs/run/replace.md")
            ),
        ));
    }
}

fn disk(log: &LogReport, found: &mut Vec<Finding>) {
    if let Some(warning) = &log.warning {
        found.push(finding(
            Weight::Warning,
            format!("the disk of its log has trouble: {warning}"),
            concat!("make room, or give the log a larger disk; see ", page!("docs/run/plan.md")),
        ));
    }
    let Some(mean) = mean_sync(log) else { return };
    if mean > SYNC_MAX {
        found.push(slow_disk(mean));
    }
    let latency = log.sync_latency.as_ref();
    let tail = latency.and_then(|times| slowest_of_a_hundred(&times.buckets, times.beyond));
    if let Some(tail) = tail.filter(|tail| *tail > TAIL_MAX) {
        let (tail, longest) = (tail.as_secs_f64() * 1000.0, log.sync_us_max as f64 / 1000.0);
        found.push(finding(
            Weight::Warning,
            format!(
                "one in a hundred syncs of its log takes more than {tail:.0} ms, the longest took {longest:.0} ms"
            ),
            "commits stand still meanwhile if it leads: see what else writes to this disk, or give the log one of \
             its own",
        ));
    }
}

/// Of a sync of the log; none of too few.
pub fn mean_sync(log: &LogReport) -> Option<Duration> {
    (log.syncs >= SYNCS_MIN).then(|| Duration::from_secs_f64(log.sync_us_avg.max(0.0) / 1e6))
}

/// More than one in a hundred took longer than this; none if it is not known how long at least. `buckets`: the upper
/// end of each in microseconds, the shortest first, and how many were no longer.
fn slowest_of_a_hundred(buckets: &[(u64, u64)], beyond: u64) -> Option<Duration> {
    let all = beyond + buckets.iter().map(|(_, count)| count).sum::<u64>();
    let mut longer = beyond;
    for (end_us, count) in buckets.iter().rev() {
        if longer > all / 100 {
            return Some(Duration::from_micros(*end_us));
        }
        longer += count;
    }
    None
}

fn lag(node: &NodeSurvey, found: &mut Vec<Finding>) {
    if let Some((lag, seconds)) = node.behind() {
        found.push(finding(
            Weight::Warning,
            format!("it is {lag} write sets behind, the first of them {seconds:.0} s old"),
            concat!(
                "see what holds its appliers (SHOW PROCESSLIST); until it has caught up, what clients read there may \
                 be old; see ",
                page!("docs/run/troubles.md")
            ),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::port::{Fault, MemberReport};
    use quorate_live::ServerReport;

    fn well() -> NodeSurvey {
        let server = ServerReport { ready: true, ..ServerReport::default() };
        let log = LogReport { syncs: 1000, sync_us_avg: 700.0, ..LogReport::default() };
        let own = OwnReport { primary: true, log, server: Some(server), ..OwnReport::default() };
        NodeSurvey {
            name: "db1".into(),
            state: SYNCED.into(),
            ready: true,
            lag: Some(3),
            own: Some(own),
            ..NodeSurvey::default()
        }
    }

    fn found(change: impl Fn(&mut OwnReport)) -> Vec<(Weight, String)> {
        let mut node = well();
        node.own.as_mut().into_iter().for_each(change);
        of_member(&node).into_iter().map(|finding| (finding.weight, finding.what)).collect()
    }

    fn one(change: impl Fn(&mut OwnReport)) -> (Weight, String) {
        let found = found(change);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn nothing_is_found_at_a_member_that_is_well() {
        assert_eq!(found(|_| {}), []);
        assert_eq!(found(|own| own.certificate_days = Some(CERTIFICATE_DAYS + 1)), []);
        assert_eq!(of_member(&NodeSurvey::default()), []);
    }

    #[test]
    fn a_member_that_is_not_synced_is_an_error() {
        let mut node = well();
        node.state = "Non-primary".into();
        let found = of_member(&node);
        assert_eq!(
            (found[0].weight, &*found[0].what),
            (Weight::Error, "it is Non-primary, not Synced")
        );
        let told = of_member(&NodeSurvey { ready: false, ..well() });
        assert_eq!(
            (told.len(), told[0].weight, &*told[0].what),
            (1, Weight::Error, "it is Synced, but takes no writes")
        );
        assert_eq!(one(|own| own.disputed = Some("db2 says so".into())).0, Weight::Error);
    }

    #[test]
    fn slow_disks_are_told_by_their_mean_or_by_their_longest_syncs() {
        let slow = one(|own| own.log.sync_us_avg = 12_000.0);
        assert_eq!(slow, (Weight::Warning, "a sync of the log's disk takes 12.0 ms".into()));
        // Not of a handful.
        let few = |own: &mut OwnReport| (own.log.sync_us_avg, own.log.syncs) = (12_000.0, 3);
        assert_eq!(found(few), []);

        let buckets = |long: u64| vec![(1_000, 1_000 - long), (100_000, 0), (250_000, long)];
        assert_eq!(slowest_of_a_hundred(&buckets(10), 0), None);
        assert_eq!(slowest_of_a_hundred(&buckets(11), 0), Some(Duration::from_millis(100)));
        assert_eq!(slowest_of_a_hundred(&buckets(0), 11), Some(Duration::from_millis(250)));
        let uneven = one(|own| {
            let mut times = own.log.sync_latency.take().unwrap_or_default();
            times.buckets = buckets(20);
            (own.log.sync_latency, own.log.sync_us_max) = (Some(times), 180_000);
        });
        assert!(uneven.1.contains("takes more than 100 ms, the longest took 180 ms"), "{uneven:?}");
        let full = one(|own| own.log.warning = Some("no space".into()));
        assert_eq!(full.1, "the disk of its log has trouble: no space");
    }

    #[test]
    fn lag_certificates_and_errors_are_told_before_they_hurt() {
        let mut behind = well();
        (behind.lag, behind.lag_seconds) = (Some(40), Some(9.0));
        assert_eq!(
            of_member(&behind)[0].what,
            "it is 40 write sets behind, the first of them 9 s old"
        );
        let days = |days| move |own: &mut OwnReport| own.certificate_days = Some(days);
        assert_eq!(one(days(12)), (Weight::Warning, "its certificate expires in 12 days".into()));
        assert_eq!(one(days(-1)), (Weight::Error, "its certificate has expired".into()));
        let advice = |role: &str| {
            let mut node = well();
            node.member = Some(MemberReport { role: role.into(), ..MemberReport::default() });
            node.own.as_mut().unwrap().certificate_days = Some(12);
            of_member(&node).remove(0).advice
        };
        assert!(advice("learner").contains("FLUSH SSL"));
        assert!(advice("logger").contains("systemctl restart quorate-logger"));
        let fault = |seconds_ago| {
            move |own: &mut OwnReport| {
                own.last_fault = Some(Fault { message: "no space".into(), seconds_ago });
            }
        };
        assert_eq!(one(fault(120)).1, "it had an error 2 min ago: no space");
        assert_eq!(found(fault(86_400)), []);
    }
}
