// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/node_metrics.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/metrics/metrics.h"
#include "pkg/metrics/metrics_server.h"
#include "test/support/scrape/scrape.h"

namespace resmgr {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string TextOf(const NodeMetrics& metrics) {
  return prometheus::TextSerializer().Serialize(metrics.collectable()->Collect());
}

TEST(NodeMetricsTest, CountsWhatTheBrainDoes) {
  NodeMetrics metrics;
  metrics.Decided(NodeMetrics::Operation::kAllocate, microseconds(7));
  metrics.Refused("RESOURCE_EXHAUSTED");
  metrics.Refused("RESOURCE_EXHAUSTED");
  metrics.Moved(3);
  metrics.UpdateRetried();
  metrics.Lagged(microseconds(2000));
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text,
              HasSubstr("cri_resmgr_policy_decision_seconds_count{operation=\"allocate\"} 1"));
  EXPECT_THAT(text, HasSubstr("decision_seconds_bucket{operation=\"allocate\",le=\"5e-06\"} 0"));
  EXPECT_THAT(text, HasSubstr("decision_seconds_bucket{operation=\"allocate\",le=\"1e-05\"} 1"));
  EXPECT_THAT(text, HasSubstr("policy_refusals_total{reason=\"RESOURCE_EXHAUSTED\"} 2"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_container_moves_total 3"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_container_update_retries_total 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_event_loop_lag_seconds_bucket{le=\"0.0025\"} 1"));
}

TEST(NodeMetricsTest, RefusalsAreThereBeforeTheFirstOne) {
  const NodeMetrics metrics;
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("policy_refusals_total{reason=\"RESOURCE_EXHAUSTED\"} 0"));
  EXPECT_THAT(text, HasSubstr("policy_refusals_total{reason=\"INVALID_ARGUMENT\"} 0"));
}

TEST(NodeMetricsTest, ClaimsAreCountedWithTheirCpusAndCalls) {
  NodeMetrics metrics;
  EXPECT_THAT(TextOf(metrics),
              HasSubstr("cri_resmgr_claim_calls_total{call=\"prepare\",result=\"failed\"} 0"))
      << "an increase from nothing is not seen";
  metrics.ShowClaims(2, {{0, 0}, {1, 6}});
  metrics.ClaimsAnswered({.prepare = true, .ok = 2, .failed = 1, .took = microseconds(2000)});
  metrics.ClaimsAnswered({.ok = 1, .took = seconds(9)});
  std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claims 2"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_cpus{node=\"0\"} 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_cpus{node=\"1\"} 6"));
  EXPECT_THAT(text, HasSubstr("claim_calls_total{call=\"prepare\",result=\"ok\"} 2"));
  EXPECT_THAT(text, HasSubstr("claim_calls_total{call=\"prepare\",result=\"failed\"} 1"));
  EXPECT_THAT(text, HasSubstr("claim_calls_total{call=\"unprepare\",result=\"ok\"} 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_prepare_seconds_bucket{le=\"0.001\"} 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_prepare_seconds_bucket{le=\"0.002\"} 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_prepare_seconds_count 1"));
  metrics.ShowClaims(0, {});
  text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claims 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_claim_cpus{node=\"1\"} 0"));
}

TEST(NodeMetricsTest, CountsAudits) {
  NodeMetrics metrics;
  metrics.Audited({.drifted = 2, .drifts = 3, .repaired = 1});
  metrics.Audited({.failed = true});
  std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_audits_total{result=\"drift\"} 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_audits_total{result=\"failed\"} 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drifted_containers 2")) << "one that fails tells nothing";
  metrics.Audited({});
  text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_audits_total{result=\"clean\"} 1"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drifted_containers 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drifts_total 3"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drift_repairs_total 1"));
}

TEST(NodeMetricsTest, NothingHasDriftedWhereNothingIsDecided) {
  NodeMetrics metrics;
  metrics.Audited({.drifted = 2, .drifts = 3});
  metrics.NothingDrifted();
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drifted_containers 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_audits_total{result=\"clean\"} 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_drifts_total 3"));
}

TEST(NodeMetricsTest, ShowsProblemsByKind) {
  NodeMetrics metrics;
  metrics.ShowProblems("drift", 3);
  metrics.ShowProblems("refused", 1);
  metrics.ShowProblems("drift", 0);
  EXPECT_THAT(TextOf(metrics), HasSubstr("cri_resmgr_problems{kind=\"drift\"} 0"));
  EXPECT_THAT(TextOf(metrics), HasSubstr("cri_resmgr_problems{kind=\"refused\"} 1"));
}

TEST(NodeMetricsTest, CountsEventsOfPods) {
  NodeMetrics metrics;
  metrics.PodEvents(3, 0);
  metrics.PodEvents(1, 2);
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_pod_events_total{result=\"taken\"} 4"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_pod_events_total{result=\"lost\"} 2"));
}

TEST(NodeMetricsTest, CountsViewsForSchedulersAndTheirTime) {
  NodeMetrics metrics;
  metrics.SchedulerViewMade(std::chrono::milliseconds(500));
  metrics.SchedulerViewMade(std::chrono::milliseconds(250));
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_scheduler_views_total 2"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_scheduler_view_seconds_total 0.75"));
}

TEST(NodeMetricsTest, PoolsThatAreGoneAreForgotten) {
  NodeMetrics metrics;
  const std::vector<NodeMetrics::Pool> tree = {
      {.name = "root", .exclusive = 2, .shared = 6, .all = 8, .containers = 1},
      {.name = "socket #0", .shared = 4, .all = 4}};
  metrics.ShowPools(tree);
  EXPECT_THAT(TextOf(metrics), HasSubstr("pool_cpus{class=\"exclusive\",pool=\"root\"} 2"));
  EXPECT_THAT(TextOf(metrics), HasSubstr("pool_containers{pool=\"socket #0\"} 0"));
  const std::vector<NodeMetrics::Pool> flat = {{.name = "shared", .shared = 8, .all = 8}};
  metrics.ShowPools(flat);
  EXPECT_THAT(TextOf(metrics), Not(HasSubstr("root")));
  EXPECT_THAT(TextOf(metrics), HasSubstr("pool_cpus{class=\"all\",pool=\"shared\"} 8"));
}

TEST(NodeMetricsTest, BalloonsAreShownByTypeAndName) {
  NodeMetrics metrics;
  const std::vector<NodeMetrics::Pool> two = {
      {.name = "batch[0]", .all = 4, .containers = 3, .type = "batch", .request = 3.5},
      {.name = "batch[2]", .all = 1, .type = "batch"},
      {.name = "idle", .all = 3}};
  metrics.ShowPools(two);
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("cri_resmgr_policy_balloons{balloon_type=\"batch\"} 2\n"));
  const std::string labels = "{balloon=\"batch[0]\",balloon_type=\"batch\"}";
  EXPECT_THAT(text, HasSubstr("cri_resmgr_policy_balloons_cores" + labels + " 4\n"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_policy_balloons_containers" + labels + " 3\n"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_policy_balloons_requested_cores" + labels + " 3.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("balloon=\"idle\"")));
  metrics.ShowPools({two.data(), 1});
  EXPECT_THAT(TextOf(metrics), Not(HasSubstr("batch[2]")));
  EXPECT_THAT(TextOf(metrics), HasSubstr("policy_balloons{balloon_type=\"batch\"} 1\n"));
  metrics.ShowPools({});
  EXPECT_THAT(TextOf(metrics), Not(HasSubstr("balloon")));
}

TEST(NodeMetricsTest, ThereIsOneActivePolicy) {
  NodeMetrics metrics;
  metrics.Show({.exclusive = 3, .unassigned = 1, .policy = "static"});
  metrics.Show({.exclusive = 2,
                .reserved = 1,
                .offline = 4,
                .configuration = 2,
                .cpu_files = 5,
                .cpu_files_behind = 1,
                .policy = "null"});
  const std::string text = TextOf(metrics);
  EXPECT_THAT(text, HasSubstr("policy_info{policy=\"null\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("policy=\"static\"")));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_cpus{class=\"exclusive\"} 2"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_cpus{class=\"unassigned\"} 0"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_cpus_offline 4"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_configuration_generation 2"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_cpu_files 5"));
  EXPECT_THAT(text, HasSubstr("cri_resmgr_cpu_files_behind 1"));
}

TEST(HealthTest, ALoopThatStandsStillIsSick) {
  Health health(seconds(10));
  const auto start = Health::Clock::now();
  EXPECT_EQ(health.Sickness(start), "");
  health.Beat(start);
  EXPECT_EQ(health.Sickness(start + seconds(10)), "");
  EXPECT_EQ(health.Sickness(start + seconds(12)), "the event loop stands still for 12 s");
}

TEST(HealthTest, IsServedBesideTheMetrics) {
  const Metrics metrics("1.2.3", {});
  const NodeMetrics node;
  const auto health = std::make_shared<Health>(seconds(10));
  const auto server =
      MetricsServer::Create("127.0.0.1:0", {{metrics.collectable(), node.collectable()}, health});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  EXPECT_THAT(test::Scrape(port), HasSubstr("cri_resmgr_container_moves_total 0"));
  EXPECT_THAT(test::Scrape(port), HasSubstr("cri_resmgr_build_info"));
  EXPECT_THAT(test::Scrape(port, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(test::Scrape(port, "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(test::Scrape(port, "/readyz"), HasSubstr("\r\n\r\nit starts\n"));
  health->SetNotReady("");
  EXPECT_THAT(test::Scrape(port, "/readyz"), StartsWith("HTTP/1.1 200"));
  health->Beat(Health::Clock::now() - seconds(20));
  EXPECT_THAT(test::Scrape(port, "/healthz"), StartsWith("HTTP/1.1 503"));
  // A daemon that is not alive is not ready either.
  EXPECT_THAT(test::Scrape(port, "/readyz"), StartsWith("HTTP/1.1 503"));
  for (const char* const other : {"/", "/metrics/x", "/etc/passwd", "/healthzz"})
    EXPECT_THAT(test::Scrape(port, other), HasSubstr(" 404 Not Found\r\n")) << other;
}

}  // namespace
}  // namespace resmgr
