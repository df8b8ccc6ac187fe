// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/metrics_watch.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/node/brain_host.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/node/testing/test_policies.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

// A policy with two pools: the reserved CPU, and the others.
class TwoPools final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "reserved", .cpus = CpuSet{0}, .shared = CpuSet{0}},
            {.name = "shared", .cpus = CpuSet{1, 2}, .shared = CpuSet{1, 2}, .containers = 5},
            {.name = "isolated", .cpus = CpuSet{3}, .shared = CpuSet{3}}};
  }
};

class MetricsWatchTest : public testing::Test {
 protected:
  BrainHost::Options HostOptions() {
    return {.loop = loop_,
            .machine = machine_,
            .door = door_,
            .pipeline = pipeline_,
            .hints = hints_,
            .manager = {.first_retry = milliseconds(1),
                        .last_retry = milliseconds(4),
                        .decision_times = &metrics_,
                        .observer = &watch_}};
  }
  std::unique_ptr<test::FirstFitPolicy> FirstFit() {
    return std::make_unique<test::FirstFitPolicy>(machine_);
  }
  std::string Text() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  MetricsWatch::Sources Sources(BrainHost& host) {
    return {.host = host,
            .state_saved = [] { return true; },
            .state_written = [] { return StateStore::Written{.writes = 3, .bytes = 700}; },
            .policy = [&host] { return host.manager() == nullptr ? "null" : "first-fit"; }};
  }
  // An act of a container, for calls of the observer as by the manager.
  Observer::Act ActOf(const Policy& policy, const Snapshot& snapshot,
                      std::span<const Shift> others = {}) {
    return {.policy = policy,
            .snapshot = snapshot,
            .pod = pod_,
            .container = container_,
            .others = others};
  }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  EventLoop loop_;
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_, nullptr};
  HintFinder hints_{loop_, {}};
  test::FakeDoor door_;
  NodeMetrics metrics_;
  Health health_;
  MetricsWatch watch_{loop_, machine_, metrics_, health_};
  const Pod pod_{};
  const Container container_{};
};

TEST_F(MetricsWatchTest, UnderNullAllCpusAreUnassignedAndTheDaemonIsReady) {
  BrainHost host(HostOptions());
  host.Start(nullptr);
  EXPECT_EQ(health_.WhyNotReady(), "it starts");
  const auto watching = watch_.Follow(Sources(host));
  EXPECT_EQ(health_.WhyNotReady(), "");
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"unassigned\"} 4"));
  EXPECT_THAT(Text(), HasSubstr("policy_info{policy=\"null\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_state_saved 1"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_state_writes_total{result=\"ok\"} 3"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_state_writes_total{result=\"failed\"} 0"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_state_written_bytes_total 700"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_runtime_ready 0"));
}

TEST_F(MetricsWatchTest, ShowsTheFilesThatTellContainersTheirCpus) {
  BrainHost host(HostOptions());
  host.Start(nullptr);
  MetricsWatch::Sources sources = Sources(host);
  sources.cpu_files = [] { return std::pair<size_t, size_t>(7, 2); };
  const auto watching = watch_.Follow(std::move(sources));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpu_files 7"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpu_files_behind 2"));
}

TEST_F(MetricsWatchTest, ShowsHowManyContainersTheRuntimeDoesNotUpdate) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  test::FakeDoor::Link& link = *door_.links().front();
  test::FakeRuntimeClient& runtime = link.client;
  const ContainerId web = link.HoldRunning("web");
  link.HoldRunning("db");
  Status answer = Internal("it will not");
  runtime.on_update = [&] {
    loop_.Post([&] {
      while (!runtime.updates.empty())
        runtime.Answer(0, answer);
    });
  };
  const auto shows = [&](std::string_view number) {
    // After a failed update the brain asks for a list.
    if (!door_.links().empty()) runtime.AnswerLists();
    RunFor(loop_, milliseconds(20));
    return Text().find(fmt::format("not_updated_containers {}\n", number)) != std::string::npos;
  };
  EXPECT_TRUE(shows("0"));
  link.Synchronize();
  EXPECT_TRUE(shows("2"));
  runtime.Remove(web);
  host.manager()->ContainerRemoved(web);
  EXPECT_TRUE(shows("1"));
  // The null policy releases the other one, which is refused as well.
  link.events.disconnected();
  host.SetPolicy(nullptr, [](const Status&) {});
  link.Synchronize();
  EXPECT_TRUE(shows("1"));
  answer = OkStatus();
  bool released = false;
  for (int i = 0; i < 50 && !released; ++i)
    released = shows("0");
  EXPECT_TRUE(released);
}

TEST_F(MetricsWatchTest, UnderNullNoAuditFailsAndNothingHasDrifted) {
  const NodeOptions options{.policies = test::NullAndFirstFit()};
  Counted counted(options);
  BrainHost host(WithCounts(HostOptions(), &counted));
  host.Start(FirstFit());
  const auto watching = counted.watch->Follow(Sources(host), milliseconds(1));
  const auto text = [&counted] {
    return prometheus::TextSerializer().Serialize(counted.node.collectable()->Collect());
  };
  Auditor auditor(AuditorOptions(loop_, host, pipeline_, &counted));
  const auto audited = [&] {
    std::optional<StatusCode> code;
    auditor.Run(false,
                [&code](const StatusOr<AuditReport>& result) { code = result.status().code(); });
    EXPECT_TRUE(resmgr::test::RunUntil(loop_, [&code] { return code.has_value(); }));
    return code.value_or(StatusCode::kInternal);
  };
  EXPECT_EQ(audited(), StatusCode::kUnavailable) << "the runtime has not been read yet";
  EXPECT_THAT(text(), HasSubstr("audits_total{result=\"failed\"} 1\n"));
  counted.node.Audited({.drifted = 1, .drifts = 1});
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_drifted_containers 1\n"));
  host.SetPolicy(nullptr, [](const Status&) {});
  EXPECT_EQ(audited(), StatusCode::kFailedPrecondition);
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(text(), HasSubstr("audits_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("cri_resmgr_drifted_containers 0\n"));
}

// Two resource managers number their containers alike.
TEST_F(MetricsWatchTest, ARetryIsCountedForTheContainerThatFailed) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  const Snapshot& snapshot = host.manager()->snapshot();
  const Policy& policy = host.manager()->policy();
  Container other;
  other.id = ContainerId("other");
  ASSERT_EQ(other.key, container_.key);
  watch_.OnFailed(ActOf(policy, snapshot), Internal("it will not"));
  watch_.OnPushed({.policy = policy, .snapshot = snapshot, .pod = pod_, .container = other});
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_container_update_retries_total 0"));
  watch_.OnPushed(ActOf(policy, snapshot));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_container_update_retries_total 1"));
}

// An exited container counts until it is removed, which changes nothing else.
TEST_F(MetricsWatchTest, ShowsThatAnExitedContainerWasRemoved) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  door_.links().front()->Synchronize();
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  Pod pod;
  pod.id = PodSandboxId("sandbox");
  host.manager()->PodCreated(pod);
  CreateRequest request;
  request.pod_id = pod.id;
  request.name = "job";
  const auto admitted = host.manager()->AdmitCreate(std::move(request));
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  host.manager()->CreateSucceeded(admitted->key, ContainerId("job-id"));
  host.manager()->ContainerExited(ContainerId("job-id"));
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_containers 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_pods 1\n"));
  host.manager()->ContainerRemoved(ContainerId("job-id"));
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_containers 0\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_pods 0\n"));
}

// A claim that no container carries yet holds its CPUs all the same.
TEST_F(MetricsWatchTest, ShowsClaimsAndTheirCpus) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  door_.links().front()->Synchronize();
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_claims 0\n"));
  host.manager()->claims().Reserve({.uid = "u-1",
                                    .namespace_name = "ns",
                                    .name = "fast",
                                    .parts = {{.device = "cpu", .cpus = 2}}},
                                   [](const StatusOr<ClaimGrant>&) {});
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_claims 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_claim_cpus{node=\"0\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"exclusive\"} 2\n"));
  host.manager()->claims().Release("u-1", [](const Status&) {});
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_claims 0\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_claim_cpus{node=\"0\"} 0\n"));
}

TEST_F(MetricsWatchTest, ShowsThePoolsOfAPolicyThatMovesNoContainer) {
  BrainHost host(HostOptions());
  host.Start(std::make_unique<TwoPools>(machine_));
  door_.links().front()->Synchronize();
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("pool=\"reserved\""));
  host.SetPolicy(FirstFit(), [](const Status&) {});
  watch_.NoteConfiguration();
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), Not(HasSubstr("pool=\"reserved\"")));
}

TEST_F(MetricsWatchTest, ShowsThePoolsOfTheActivePolicyAlone) {
  BrainHost host(HostOptions());
  host.Start(std::make_unique<TwoPools>(machine_));
  watch_.NoteConfiguration();
  watch_.NoteRefusedConfiguration();
  EXPECT_THAT(Text(), HasSubstr("configurations_total{result=\"in_force\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("configurations_total{result=\"refused\"} 1"));
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  EXPECT_EQ(health_.WhyNotReady(), "what the runtime holds is not known yet");
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_pool_cpus{class=\"shared\",pool=\"shared\"} 2"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_pool_containers{pool=\"shared\"} 5"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"reserved\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"shared\"} 2"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"unassigned\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_configuration_generation 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("cri_resmgr_event_loop_lag_seconds_count 0\n")));
  host.SetPolicy(nullptr, [](const Status&) {});
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), Not(HasSubstr("cri_resmgr_pool_cpus{")));
}

TEST_F(MetricsWatchTest, CountsRefusalsMovesAndRetries) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  const Snapshot& snapshot = host.manager()->snapshot();
  const Policy& policy = host.manager()->policy();
  const std::vector<Shift> others = {{.containers = 3}, {.containers = 1}};
  watch_.OnPlaced(ActOf(policy, snapshot, others));
  watch_.OnMoved(ActOf(policy, snapshot), {.containers = 2});
  watch_.OnRefused(ActOf(policy, snapshot), ResourceExhausted("no room"));
  watch_.OnRefused(ActOf(policy, snapshot), InvalidArgument("never"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_container_moves_total 6"));
  EXPECT_THAT(Text(), HasSubstr("policy_refusals_total{reason=\"RESOURCE_EXHAUSTED\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("policy_refusals_total{reason=\"INVALID_ARGUMENT\"} 1"));

  // The first try does not count as a retry; two more follow.
  watch_.OnFailed(ActOf(policy, snapshot), Unavailable("away"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_container_update_retries_total 0"));
  watch_.OnFailed(ActOf(policy, snapshot), Unavailable("away"));
  watch_.OnPushed(ActOf(policy, snapshot));
  watch_.OnPushed(ActOf(policy, snapshot));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_container_update_retries_total 2"));
}

// Balloons, of which the reserved one has a number.
class TwoBalloons final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "reserved[0]", .kind = "balloon", .cpus = CpuSet{0}, .shared = CpuSet{0}},
            {.name = "batch[1]",
             .kind = "balloon",
             .cpus = CpuSet{1, 2},
             .shared = CpuSet{1, 2},
             .shared_request = MilliCpu{1500},
             .containers = 5}};
  }
};

TEST_F(MetricsWatchTest, ShowsBalloonsAndTheReservedOnesAmongThem) {
  BrainHost host(HostOptions());
  host.Start(std::make_unique<TwoBalloons>(machine_));
  door_.links().front()->Synchronize();
  const auto watching = watch_.Follow(Sources(host), milliseconds(1));
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"reserved\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cri_resmgr_cpus{class=\"shared\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("policy_balloons{balloon_type=\"batch\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("policy_balloons_requested_cores{balloon=\"batch[1]\","
                                "balloon_type=\"batch\"} 1.5\n"));
}

TEST_F(MetricsWatchTest, MeasuresDecisionsAndPreviewsButNoOtherQuestions) {
  BrainHost host(HostOptions());
  host.Start(FirstFit());
  const std::string reconciled = "policy_decision_seconds_count{operation=\"reconcile\"} ";
  EXPECT_THAT(Text(), HasSubstr(reconciled + "0"));
  door_.links().front()->Synchronize();
  EXPECT_THAT(Text(), HasSubstr(reconciled + "1"));
  const Policy& policy = host.manager()->policy();
  EXPECT_EQ(policy.name(), "first-fit");
  EXPECT_TRUE(policy.Clone()->Reconcile(host.manager()->snapshot()).ok());
  EXPECT_THAT(Text(), HasSubstr(reconciled + "1"));
  EXPECT_TRUE(host.PreviewPolicy(FirstFit().get()).ok());
  EXPECT_THAT(Text(), HasSubstr(reconciled + "2"));
}

}  // namespace
}  // namespace resmgr
