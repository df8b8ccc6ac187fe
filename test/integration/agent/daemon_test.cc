// SPDX-License-Identifier: Apache-2.0
// The real daemon and the real agent as a pair: the reports that reach the node through both of
// them; and the daemon works without an agent.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pkg/kube/pod_fingerprint.h"
#include "test/integration/agent/agent_pair_fixture.h"

namespace resmgr::test {
namespace {

constexpr char kDefaultMap[] = "cri-resmgr-config.default";
constexpr char kPolicy[] = "cri-resource-manager.intel.com/policy";
constexpr char kSource[] = "cri-resource-manager.intel.com/policy-source";
constexpr char kError[] = "cri-resource-manager.intel.com/config-error";
constexpr char kStatus[] = "cri-resource-manager.intel.com/config-status";
constexpr char kCpusOfNode[] = "cri-resource-manager.intel.com/cpus";
constexpr char kEventsPath[] = "/api/v1/namespaces/default/events";

class DaemonAndAgentTest : public AgentPairTest {
 protected:
  // Under the static policy.
  void StartDaemonForAgent() {
    std::ofstream(Path("policy.yaml")) << "policy: {Active: static, ReservedResources: {CPU: 1}}\n";
    StartDaemon(PairFlags());
  }
  void StartAgentAndDaemon() {
    StartAgent();
    StartDaemonForAgent();
  }
  bool NodeShows(std::string_view policy, std::string_view source) {
    return Eventually([&] {
      return api_.Annotation(kNode, kPolicy) == policy && api_.Annotation(kNode, kSource) == source;
    });
  }
  // Checks the node's one NUMA node, whose CPUs are all but the reserved one.
  bool NodeShowsExclusive(int exclusive) {
    const int all = kCpus - 1;
    const std::string text = fmt::format(
        R"({{"version":1,"numa":[{{"id":0,"allocatable":{},"exclusive":{},"free":{}}}]}})", all,
        exclusive, all - exclusive);
    return Eventually([&] { return api_.Annotation(kNode, kCpusOfNode) == text; });
  }
  // Checks the node's NodeResourceTopology: its one zone, and the pods that it is about.
  bool SchedulersSee(int available, const std::vector<PodName>& pods) {
    return Eventually([&] {
      const Json topology = api_.Topology(kNode);
      if (!topology.is_object()) return false;
      const Json& cpu = topology["zones"].at(0)["resources"].at(0);
      return cpu["name"] == "cpu" && cpu["available"] == std::to_string(available) &&
             topology["attributes"].at(3)["value"] == PodFingerprint(pods);
    });
  }
  int WritesOfTheNode() const {
    const auto requests = api_.Requests();
    return static_cast<int>(std::ranges::count_if(requests, [](const auto& request) {
      return request.method != "GET" && request.path.starts_with(ApiServer::kNodes);
    }));
  }
  // One CPU is left that could be a container's own.
  void FillTheNode(CriClient& client) {
    Run(client, MakeGuaranteedPod("big"), MakeGuaranteedContainer("main", kCpus - 2));
  }
  // A creation for which there is no room.
  void BeRefused(CriClient& client, const std::string& pod) {
    std::string& sandbox = sandboxes_[pod];
    if (sandbox.empty()) sandbox = Ok(client.RunPod(MakeGuaranteedPod(pod)));
    EXPECT_EQ(
        client.CreateContainer(sandbox, MakeGuaranteedPod(pod), MakeGuaranteedContainer("main", 3))
            .status()
            .code(),
        StatusCode::kResourceExhausted);
  }
  // The Event of this pod that the server has, or null.
  Json EventOf(const std::string& pod) const {
    for (const Json& event : api_.Events()) {
      if (event["involvedObject"]["kind"] == "Pod" && event["involvedObject"]["name"] == pod)
        return event;
    }
    return nullptr;
  }
  bool HasEvent(const std::string& pod, const std::string& reason, int count = 1) {
    return Eventually([&] {
      const Json event = EventOf(pod);
      return event.is_object() && event["reason"] == reason && event["count"] == count;
    });
  }
  std::string Log() const { return AgentLog(); }
  // A pod comes and goes as without an agent. A wait for the agent would occur each time, so the
  // best of five times is judged; a single one may be slow because of other work.
  void ExpectUndisturbed() {
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5 && best >= kAtOnceAlone; ++i) {
      const auto start = std::chrono::steady_clock::now();
      LetAPodComeAndGo();
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    EXPECT_LT(best, kAtOnceAlone);
  }
  void LetAPodComeAndGo() {
    CriClient client = Relayed();
    const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
    EXPECT_EQ(CpusAtRuntime(running.container).size(), 2);
    EXPECT_THAT(client.StopContainer(running.container), IsOk());
    EXPECT_THAT(client.RemoveContainer(running.container), IsOk());
    EXPECT_THAT(client.StopPod(running.pod), IsOk());
    EXPECT_THAT(client.RemovePod(running.pod), IsOk());
  }

  std::map<std::string, std::string> sandboxes_;  // of pods that are refused
};

TEST_F(DaemonAndAgentTest, NodeShowsWhatIsInForce) {
  StartAgentAndDaemon();
  ASSERT_TRUE(NodeShows("static", Path("policy.yaml"))) << Log() << daemon_->Log();
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: static-plus\nReservedResources: {CPU: 1}"}});
  ASSERT_TRUE(NodeShows("static-plus", "agent")) << Log() << daemon_->Log();
  EXPECT_TRUE(Eventually([this] { return api_.Annotation(kNode, kStatus) == "accepted"; }));
  // A refused configuration changes nothing of it.
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: nonsense"}});
  ASSERT_TRUE(Eventually([this] { return api_.Annotation(kNode, kStatus) == "rejected"; }));
  EXPECT_TRUE(NodeShows("static-plus", "agent"));
}

TEST_F(DaemonAndAgentTest, NodeShowsHowManyCpusAreAllocated) {
  StartAgentAndDaemon();
  EXPECT_TRUE(NodeShowsExclusive(0)) << Log() << daemon_->Log();
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  EXPECT_TRUE(NodeShowsExclusive(2)) << Log() << daemon_->Log();
  // All that the start has to tell is written by then.
  ASSERT_TRUE(NodeShows("static", Path("policy.yaml"))) << Log();
  ASSERT_TRUE(Eventually([this] { return api_.Annotation(kNode, kStatus) == "none"; })) << Log();
  // A restart of one of the programs writes nothing.
  const int writes = WritesOfTheNode();
  StartAgent();
  daemon_->Kill();
  StartDaemonForAgent();
  CriClient again = Relayed();
  Run(again, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 1));
  EXPECT_TRUE(NodeShowsExclusive(3)) << Log() << daemon_->Log();
  EXPECT_EQ(WritesOfTheNode(), writes + 1);
  ASSERT_THAT(again.StopContainer(running.container), IsOk());
  EXPECT_TRUE(NodeShowsExclusive(1)) << Log() << daemon_->Log();
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: null"}});
  EXPECT_TRUE(Eventually([this] { return api_.Annotation(kNode, kCpusOfNode).empty(); })) << Log();
}

TEST_F(DaemonAndAgentTest, NodeShowsNoCpusWhereTheAgentIsToldSo) {
  StartAgent({"-node-reports="});
  StartDaemonForAgent();
  ASSERT_TRUE(Logged("does not name cpus")) << daemon_->Log();
  EXPECT_EQ(api_.Annotation(kNode, kCpusOfNode), "");
  ExpectUndisturbed();
}

// A server that is away, refuses or asks for a pause delays no call, and gets the last state.
TEST_F(DaemonAndAgentTest, AllocatedCpusOutliveFailuresOfTheServer) {
  StartAgentAndDaemon();
  ASSERT_TRUE(NodeShowsExclusive(0)) << Log() << daemon_->Log();
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 1));
  api_.FailNext(2, 429, ApiServer::kNodes, 1);
  EXPECT_TRUE(NodeShowsExclusive(1)) << Log();
  api_.Stop();
  Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 2));
  ExpectUndisturbed();
  ASSERT_THAT(api_.Start(), IsOk());
  EXPECT_TRUE(NodeShowsExclusive(3)) << Log();
}

// Rows N1 to N3 and N10 of the acceptance table.
TEST_F(DaemonAndAgentTest, SchedulersAreToldWhatWouldBeGranted) {
  StartAgentAndDaemon();
  ASSERT_TRUE(SchedulersSee(kCpus - 1, {})) << Log() << daemon_->Log() << api_.Topology(kNode);
  const Json topology = api_.Topology(kNode);
  EXPECT_EQ(topology["metadata"]["ownerReferences"].at(0)["uid"], "uid-n1");
  EXPECT_EQ(topology["attributes"].at(0)["value"], "best-effort");
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  EXPECT_TRUE(SchedulersSee(kCpus - 3, {{"default", "dsp"}})) << Log() << api_.Topology(kNode);
  EXPECT_THAT(client.StopContainer(running.container), IsOk());
  EXPECT_TRUE(SchedulersSee(kCpus - 1, {{"default", "dsp"}})) << "the pod is still there";
  EXPECT_THAT(client.RemoveContainer(running.container), IsOk());
  EXPECT_TRUE(SchedulersSee(kCpus - 1, {})) << Log() << api_.Topology(kNode);
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: null"}});
  EXPECT_TRUE(Eventually([this] { return api_.Topology(kNode).is_null(); })) << Log();
}

// Row N8.
TEST_F(DaemonAndAgentTest, TopologyOutlivesFailuresOfTheServer) {
  StartAgentAndDaemon();
  ASSERT_TRUE(SchedulersSee(kCpus - 1, {})) << Log() << daemon_->Log();
  CriClient client = Relayed();
  api_.FailNext(2, 429, ApiServer::kTopologies, 1);
  Run(client, MakeGuaranteedPod("a"), MakeGuaranteedContainer("main", 1));
  EXPECT_TRUE(SchedulersSee(kCpus - 2, {{"default", "a"}})) << Log();
  api_.Stop();
  Run(client, MakeGuaranteedPod("b"), MakeGuaranteedContainer("main", 2));
  ExpectUndisturbed();
  ASSERT_THAT(api_.Start(), IsOk());
  EXPECT_TRUE(SchedulersSee(kCpus - 4, {{"default", "a"}, {"default", "b"}})) << Log();
}

// Row N9, with the ten minutes in agent/topology_writer_test.cc.
TEST_F(DaemonAndAgentTest, WithoutTheDefinitionOfTopologiesNothingElseChanges) {
  constexpr std::string_view kMissing = "has no CustomResourceDefinition";
  api_.DefineTopologies(false);
  StartAgentAndDaemon();
  ASSERT_TRUE(Eventually([&] { return Log().find(kMissing) != std::string::npos; })) << Log();
  EXPECT_TRUE(NodeShowsExclusive(0)) << Log();
  ExpectUndisturbed();
  CriClient client = Relayed();
  for (int pods = 1; pods <= 3; ++pods) {
    const Running running = Run(client, MakeGuaranteedPod(fmt::format("pod{}", pods)),
                                MakeGuaranteedContainer("main", 1));
    EXPECT_EQ(CpusAtRuntime(running.container).size(), 1);
    ASSERT_TRUE(NodeShowsExclusive(pods)) << "each is a change for schedulers, too" << Log();
  }
  const auto requests = api_.Requests();
  EXPECT_EQ(
      std::ranges::count_if(
          requests, [](const auto& one) { return one.path.starts_with(ApiServer::kTopologies); }),
      1);
  const std::string log = TextOf(Path("agent.log"));
  EXPECT_EQ(log.find(kMissing), log.rfind(kMissing)) << log;
}

TEST_F(DaemonAndAgentTest, ATopologyOfAnotherProgramIsLeftAlone) {
  const Json others = {
      {"metadata",
       {{"managedFields", Json::array({{{"manager", "nfd-master"}, {"operation", "Update"}}})}}},
      {"zones", Json::array()}};
  api_.objects().Put(std::string(ApiServer::kTopologies), kNode, others);
  StartAgentAndDaemon();
  ASSERT_TRUE(Eventually([this] {
    const std::vector<Json> events = api_.Events();
    return std::ranges::any_of(
        events, [](const Json& event) { return event["reason"] == "TopologyConflict"; });
  })) << Log();
  EXPECT_EQ(api_.Topology(kNode)["zones"], Json::array());
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: null"}});
  EXPECT_TRUE(NodeShows("null", "agent"));
  EXPECT_TRUE(api_.Topology(kNode).is_object());
}

TEST_F(DaemonAndAgentTest, SchedulersAreToldNothingWhereTheConfigurationSaysSo) {
  StartAgentAndDaemon();
  ASSERT_TRUE(SchedulersSee(kCpus - 1, {})) << Log() << daemon_->Log();
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: static\nReservedResources: {CPU: 1}"},
                                  {"nrt", "Publish: false"}});
  EXPECT_TRUE(Eventually([this] { return api_.Topology(kNode).is_null(); })) << Log();
}

TEST_F(DaemonAndAgentTest, SchedulersAreToldNothingWhereTheAgentIsToldSo) {
  StartAgent({"-node-reports=cpus"});
  StartDaemonForAgent();
  ASSERT_TRUE(Logged("does not name topology")) << daemon_->Log();
  EXPECT_TRUE(NodeShowsExclusive(0)) << Log();
  EXPECT_TRUE(api_.Topology(kNode).is_null());
}

TEST_F(DaemonAndAgentTest, PodsGetEventsOfRefusals) {
  StartAgentAndDaemon();
  CriClient client = Relayed();
  FillTheNode(client);
  BeRefused(client, "late");
  ASSERT_TRUE(HasEvent("late", "CPURefused")) << Log() << daemon_->Log();
  const Json event = EventOf("late");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["namespace"], "default");
  EXPECT_EQ(event["involvedObject"]["uid"], MakeGuaranteedPod("late").metadata().uid());
  EXPECT_THAT(event["message"].get<std::string>(),
              testing::StartsWith("container main: its creation is refused by policy static: "));
  BeRefused(client, "late");
  EXPECT_TRUE(HasEvent("late", "CPURefused", 2)) << "one Event, with a count";
  EXPECT_EQ(api_.Events().size(), 1U);
  // The next agent makes an Event of its own, so only its predecessor's count here.
  StartAgent();
  BeRefused(client, "late");
  EXPECT_TRUE(Eventually([this] { return api_.Events().size() == 2; })) << Log();
}

TEST_F(DaemonAndAgentTest, PodsGetEventsOfMovesByAnotherPolicy) {
  StartAgentAndDaemon();
  CriClient client = Relayed();
  Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  Run(client, MakeGuaranteedPod("none"), MakeBestEffortContainer("main"));
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: null"}});
  ASSERT_TRUE(HasEvent("dsp", "ExclusiveCpusLost")) << Log() << daemon_->Log();
  EXPECT_EQ(EventOf("none"), nullptr) << "it shares CPUs";
}

TEST_F(DaemonAndAgentTest, PodsGetNoEventsWhereTheAgentIsToldSo) {
  StartAgent({"-node-reports=cpus"});
  StartDaemonForAgent();
  CriClient client = Relayed();
  FillTheNode(client);
  BeRefused(client, "late");
  ASSERT_TRUE(Logged("does not name pod-events")) << daemon_->Log();
  EXPECT_TRUE(NodeShowsExclusive(kCpus - 2)) << Log();
  EXPECT_THAT(api_.Events(), testing::IsEmpty());
}

// For any answer of the server, calls go on, and so do the other reports.
TEST_F(DaemonAndAgentTest, EventsOutliveFailuresOfTheServer) {
  StartAgentAndDaemon();
  CriClient client = Relayed();
  FillTheNode(client);
  api_.FailNext(2, 403, kEventsPath);
  BeRefused(client, "a");
  BeRefused(client, "b");
  EXPECT_TRUE(NodeShowsExclusive(kCpus - 2)) << Log();
  EXPECT_TRUE(HasEvent("a", "CPURefused")) << Log();
  EXPECT_TRUE(HasEvent("b", "CPURefused")) << Log();
  api_.FailNext(1, 429, kEventsPath, 1);
  BeRefused(client, "c");
  EXPECT_TRUE(HasEvent("c", "CPURefused")) << Log();
  api_.FailNext(1, 409, kEventsPath);
  BeRefused(client, "d");
  BeRefused(client, "e");
  EXPECT_TRUE(HasEvent("e", "CPURefused")) << Log();
  api_.Stop();
  BeRefused(client, "f");
  ASSERT_THAT(api_.Start(), IsOk());
  EXPECT_TRUE(HasEvent("f", "CPURefused")) << Log();
}

TEST_F(DaemonAndAgentTest, EventsWaitForAnAgentThatHangsOrIsAway) {
  StartDaemonForAgent();
  CriClient client = Relayed();
  FillTheNode(client);
  BeRefused(client, "early");
  StartAgent();
  ASSERT_TRUE(HasEvent("early", "CPURefused")) << Log() << daemon_->Log();
  agent_->Signal(SIGSTOP);
  for (int i = 0; i < 5; ++i)
    BeRefused(client, "hung");
  agent_->Signal(SIGCONT);
  // A call that had no answer in time is made again, so it may be more.
  EXPECT_TRUE(Eventually([this] {
    const Json event = EventOf("hung");
    return event.is_object() && event["count"] >= 5;
  })) << Log()
      << daemon_->Log();
}

TEST_F(DaemonAndAgentTest, NodeAndEventNameContainersThatLostExclusiveCpus) {
  StartAgentAndDaemon();
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("dsp"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: null"}});
  EXPECT_TRUE(Eventually([this] {
    return api_.Annotation(kNode, kStatus) == "accepted" &&
           api_.Annotation(kNode, kError).find("dsp") != std::string::npos;
  })) << Log()
      << daemon_->Log();
  EXPECT_TRUE(Eventually([this] {
    return std::ranges::any_of(api_.Events(), [](const Json& event) {
      return event["reason"] == "ExclusiveCpusLost" && event["involvedObject"]["kind"] == "Node";
    });
  })) << Log();
}

TEST_F(DaemonAndAgentTest, ShowsItAgainToTheNextAgent) {
  StartDaemonForAgent();
  ExpectUndisturbed();
  StartAgent();
  ASSERT_TRUE(NodeShows("static", Path("policy.yaml"))) << Log() << daemon_->Log();
  // The node is created again, as by a kubelet that joined anew.
  api_.objects().Delete(std::string(ApiServer::kNodes), kNode);
  api_.SetNode(kNode, {});
  StartAgent();
  EXPECT_TRUE(NodeShows("static", Path("policy.yaml"))) << Log() << daemon_->Log();
}

TEST_F(DaemonAndAgentTest, AHungAgentDelaysNoCall) {
  StartAgentAndDaemon();
  ASSERT_TRUE(NodeShows("static", Path("policy.yaml"))) << Log() << daemon_->Log();
  agent_->Signal(SIGSTOP);
  // There is something to report, and the agent does not take it.
  std::ofstream(Path("policy.yaml"))
      << "policy: {Active: static-plus, ReservedResources: {CPU: 1}}\n";
  ::kill(pid(), SIGHUP);
  ASSERT_TRUE(Logged("in force: policy static-plus")) << daemon_->Log();
  ExpectUndisturbed();
  agent_->Signal(SIGCONT);
  EXPECT_TRUE(NodeShows("static-plus", Path("policy.yaml"))) << Log() << daemon_->Log();
}

TEST_F(DaemonAndAgentTest, ADaemonThatHangsIsPendingUntilItAnswers) {
  const auto status_is = [this](const char* status, milliseconds timeout) {
    return Eventually([&] { return api_.Annotation(kNode, kStatus) == status; }, timeout);
  };
  StartDaemonForAgent();
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: static-plus\nReservedResources: {CPU: 1}"}});
  StartAgent();
  ASSERT_TRUE(status_is("accepted", kPatience)) << Log();
  ::kill(pid(), SIGSTOP);
  EXPECT_TRUE(status_is("pending", kPatience)) << Log();
  ::kill(pid(), SIGCONT);
  EXPECT_TRUE(status_is("accepted", kPatience)) << Log();
  // The same daemon still has the configuration.
  const std::string log = TextOf(Path("agent.log"));
  const size_t delivered = log.find("accepts ConfigMap");
  ASSERT_NE(delivered, std::string::npos) << log;
  EXPECT_EQ(log.find("accepts ConfigMap", delivered + 1), std::string::npos) << log;
  // Changes while it hangs arrive once it answers.
  ::kill(pid(), SIGSTOP);
  ASSERT_TRUE(status_is("pending", kPatience)) << Log();
  api_.SetConfigMap(kDefaultMap, {{"policy", "Active: static\nReservedResources: {CPU: 1}"}});
  ::kill(pid(), SIGCONT);
  EXPECT_TRUE(NodeShows("static", "agent")) << Log() << daemon_->Log();
  EXPECT_TRUE(status_is("accepted", kPatience)) << Log();
}

TEST_F(DaemonAndAgentTest, ARefusalOfTheAgentStaysWithoutEffect) {
  StartAgent({"-allow-domains", "example.com"});
  StartDaemonForAgent();
  ASSERT_TRUE(Logged("the agent refuses")) << daemon_->Log();
  EXPECT_EQ(api_.Annotation(kNode, kPolicy), "");
  ExpectUndisturbed();
}

}  // namespace
}  // namespace resmgr::test
