// SPDX-License-Identifier: Apache-2.0
// The requests of 10,000 agents to one API server: the real agents, on a clock of the test's own,
// before a server that counts. An API server of 10,000 nodes has no room for more than some hundred
// requests a second beside the kubelets' own.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/agent.h"
#include "agent/testing/topology_views.h"
#include "pkg/api/node_claims.pb.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/files.h"
#include "test/support/sanitizer.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using agent::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Under a sanitizer fewer agents run; their requests vary more from second to second.
constexpr int kAgents = kSanitized ? 500 : 10'000;
constexpr int kMost = kSanitized ? 30 : 200;   // a second, of all agents
constexpr milliseconds kStartSpread{700'000};  // as the README says for 10,000 nodes
constexpr milliseconds kLatency{5};
constexpr char kDefaultMap[] = "cri-resmgr-config.default";

// Requests by the second in which they came.
class Load {
 public:
  void Count(Clock::SteadyTime now) {
    ++by_second_[std::chrono::floor<seconds>(now.time_since_epoch()).count()];
  }
  void Clear() { by_second_.clear(); }
  int Peak() const {
    int peak = 0;
    for (const auto& [second, requests] : by_second_)
      peak = std::max(peak, requests);
    return peak;
  }
  // Counts requests in the `length` that begins with the second of `from`.
  int Within(Clock::SteadyTime from, seconds length) const {
    const int64_t first = std::chrono::floor<seconds>(from.time_since_epoch()).count();
    int sum = 0;
    for (auto at = by_second_.lower_bound(first);
         at != by_second_.end() && at->first < first + length.count(); ++at)
      sum += at->second;
    return sum;
  }

 private:
  std::map<int64_t, int> by_second_;
};

// An API server with a default ConfigMap and as many nodes as agents, or one that is away.
class CountingServer {
 public:
  explicit CountingServer(Clock& timers) : timers_(timers) {}

  struct Stream {
    agent::HttpTransport::Data data;
    agent::HttpTransport::Done done;
  };

  void Count(const std::string& method) {
    (away_ ? refused : served).Count(timers_.Steady());
    if (!away_ && method != "GET") writes.Count(timers_.Steady());
  }
  void SetMap(const std::string& policy) {
    map_ = {{"metadata", {{"name", kDefaultMap}, {"resourceVersion", std::to_string(++version_)}}},
            {"data", {{"policy", policy}}}};
    const std::string line = JsonText({{"type", "MODIFIED"}, {"object", map_}}) + "\n";
    const auto streams = map_watches_;
    for (const auto& [id, stream] : streams)
      stream.data(line);
  }
  // Cuts all watches.
  void GoAway() {
    away_ = true;
    for (auto* watches : {&map_watches_, &other_watches_}) {
      const auto cut = std::exchange(*watches, {});
      for (const auto& [id, stream] : cut)
        stream.done(Unavailable("cut"));
    }
  }
  void ComeBack() { away_ = false; }

  bool away() const { return away_; }
  size_t watches() const { return map_watches_.size() + other_watches_.size(); }
  std::string version() const { return std::to_string(version_); }
  const Json& map() const { return map_; }
  std::map<int, Stream>& WatchesOf(bool of_map) { return of_map ? map_watches_ : other_watches_; }
  int NextId() { return ++last_id_; }
  Clock& timers() { return timers_; }

  Load served;
  Load refused;
  Load writes;

 private:
  Clock& timers_;
  bool away_ = false;
  int version_ = 1;
  int last_id_ = 0;
  Json map_;
  std::map<int, Stream> map_watches_;
  std::map<int, Stream> other_watches_;
};

// One agent's way to the server. Its node keeps the annotations that were written.
class FleetTransport : public agent::HttpTransport {
 public:
  FleetTransport(CountingServer& server, std::string node)
      : server_(server), node_(std::move(node)) {}

  std::unique_ptr<Call> Send(agent::HttpRequest request, Data data, Done done) override {
    server_.Count(request.method);
    if (!server_.away() && request.target.find("watch=1") != std::string::npos) {
      return Watch(request.target, std::move(data), std::move(done));
    }
    agent::HttpReply reply{.status = 200, .body = "", .retry_after = {}};
    if (!server_.away()) reply.body = Answer(request);
    const bool refused = server_.away();
    auto handle = std::make_unique<Handle>();
    handle->timer = server_.timers().After(
        kLatency, [refused, reply = std::move(reply), done = std::move(done)] {
          if (refused) return done(Unavailable("connection refused"));
          done(reply);
        });
    return handle;
  }

 private:
  struct Handle : Call {
    EventLoop::HandlePtr timer;
  };
  class WatchHandle : public Call {
   public:
    WatchHandle(CountingServer& server, bool of_map, int id)
        : server_(server), of_map_(of_map), id_(id) {}
    WatchHandle(const WatchHandle&) = delete;
    WatchHandle& operator=(const WatchHandle&) = delete;
    ~WatchHandle() override { server_.WatchesOf(of_map_).erase(id_); }

   private:
    CountingServer& server_;
    const bool of_map_;
    const int id_;
  };

  static bool IsAbout(const std::string& target, const std::string& name) {
    return target.find("metadata.name%3D" + name + "&") != std::string::npos;
  }
  std::unique_ptr<Call> Watch(const std::string& target, Data data, Done done) {
    const bool of_map = IsAbout(target, kDefaultMap);
    const int id = server_.NextId();
    server_.WatchesOf(of_map)[id] = {std::move(data), std::move(done)};
    return std::make_unique<WatchHandle>(server_, of_map, id);
  }
  std::string Answer(const agent::HttpRequest& request) {
    if (request.method == "PATCH" && request.target.starts_with("/api/v1/nodes/")) {
      annotations_.merge_patch(ParseJson(request.body).value_or(Json())["metadata"]["annotations"]);
    }
    // Objects that an agent owns are stored as they come.
    if (request.method == "POST" || request.method == "PUT") return request.body;
    if (request.method != "GET") return "{}";
    Json items = Json::array();
    if (IsAbout(request.target, node_)) {
      items.push_back(
          {{"metadata", {{"name", node_}, {"uid", node_}, {"annotations", annotations_}}}});
    }
    if (IsAbout(request.target, kDefaultMap)) items.push_back(server_.map());
    return JsonText({{"metadata", {{"resourceVersion", server_.version()}}}, {"items", items}});
  }

  CountingServer& server_;
  const std::string node_;
  Json annotations_ = Json::object();
};

// A daemon that accepts all configurations except bad ones, and shows the one in force on the node.
class FleetDaemon : public agent::ConfigClient {
 public:
  explicit FleetDaemon(Clock& timers) : timers_(timers) {}

  // Called as when its connection to the agent stands.
  void Found(agent::Agent& found) {
    agent_ = &found;
    Show();
  }

  // A pod of that number is refused.
  void Refuse(int pod) { Tell(fmt::format("pod-{}", pod), "CPURefused"); }
  // Lets containers move when another policy comes into force.
  void HavePods(int pods) { pods_ = pods; }
  // Reports the CPUs after containers have come or gone.
  void Allocate(int exclusive) {
    EXPECT_THAT(agent_->ShowCpus(fmt::format("{} CPUs", exclusive)), IsOk());
  }

  // Reports the same for schedulers.
  void TellSchedulers(int available) {
    agent::ShowTopologyRequest view;
    agent::AddAmount(agent::AddZone(view, {10}), "cpu", 64, 64, available);
    EXPECT_THAT(agent_->ShowTopology(std::move(view)), IsOk());
  }

  // Reports devices whose CPUs claims may have; a daemon does so every ten seconds, too.
  void TellDevices(int cpus) {
    cri_resmgr::v1::ShowDevicesRequest report;
    report.set_driver("cpu.cri-resmgr.intel.com");
    cri_resmgr::v1::SliceDevice& device = *report.add_devices();
    device.set_name("cpu-numa-0");
    device.add_attributes()->set_name("resource.kubernetes.io/numaNode");
    device.set_capacity("cpu.cri-resmgr.intel.com/cpu");
    device.set_cpus(cpus);
    device.set_step(1);
    EXPECT_THAT(agent_->ShowDevices(std::move(report)), IsOk());
  }

  void SetCallbacks(Callbacks /*callbacks*/) override {}
  void SetConfig(const std::map<std::string, std::string>& config, Done done) override {
    const bool bad = config.at("policy") == "bad";
    timer_ = timers_.After(kLatency, [this, bad, policy = config.at("policy"), done] {
      if (!bad) policy_ = policy;
      if (!bad) Show();
      done(bad ? "no such policy" : "");
    });
  }
  bool TakeBack() override { return false; }

 private:
  void Show() {
    if (agent_ == nullptr || policy_.empty()) return;
    agent_->PatchNode({{.op = "add",
                        .path = "/metadata/annotations/cri-resource-manager.intel.com~1policy",
                        .value = JsonText(policy_)}},
                      [](const Status& status) { EXPECT_THAT(status, IsOk()); });
    EXPECT_THAT(agent_->ShowCpus(policy_ + "'s CPUs"), IsOk());
    for (int i = 0; i < pods_; ++i)
      Tell(fmt::format("pod-{}", i), "CPUsMoved");
  }

  void Tell(const std::string& pod, const char* reason) {
    cri_resmgr::v1::AddPodEventsRequest request;
    cri_resmgr::v1::PodEvent& event = *request.add_events();
    event.set_pod_namespace("team");
    event.set_pod(pod);
    event.set_uid(pod);
    event.set_reason(reason);
    event.set_message("container main");
    event.set_count(1);
    EXPECT_THAT(agent_->AddPodEvents(request), IsOk());
  }

  agent::Agent* agent_ = nullptr;
  int pods_ = 0;
  std::string policy_;
  Clock& timers_;
  EventLoop::HandlePtr timer_;
};

class FleetTest : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<FleetTransport> transport;
    std::unique_ptr<FleetDaemon> daemon;
    std::unique_ptr<agent::Agent> agent;
  };

  FleetTest() {
    // Each agent logs a rejection, independent of the settings.
    testing::internal::CaptureStderr();
    server_.SetMap("first");
    nodes_.resize(kAgents);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].transport = std::make_unique<FleetTransport>(server_, fmt::format("n{}", i));
      nodes_[i].daemon = std::make_unique<FleetDaemon>(timers_);
    }
  }
  ~FleetTest() override { testing::internal::GetCapturedStderr(); }

  // Former agents end.
  void StartAgents() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      agent::AgentOptions options;
      options.node = fmt::format("n{}", i);
      options.retry.start_spread = kStartSpread;
      options.report = agent::ReportOptions();  // for 10,000 nodes
      options.retry.seed = seed_++;
      nodes_[i].agent.reset();
      nodes_[i].agent =
          std::make_unique<agent::Agent>(options, *nodes_[i].transport, timers_, *nodes_[i].daemon);
      nodes_[i].agent->Start();
      nodes_[i].daemon->Found(*nodes_[i].agent);
    }
  }
  // Waits until all agents watch and have sent their reports.
  void StartAndSettle() {
    StartAgents();
    Run(kStartSpread + seconds(10));
    ASSERT_EQ(server_.watches(), size_t{3} * kAgents);
    Forget();
  }
  void Run(milliseconds time) { timers_.Advance(time); }
  void Forget() {
    for (Load* load : {&server_.served, &server_.refused, &server_.writes})
      load->Clear();
  }
  void Tell(const char* what, Clock::SteadyTime from) const {
    fmt::print(
        "{} agents, {}: {} requests in the first minute, peak {}/s; writes {}, peak {}/s; "
        "refused, peak {}/s\n",
        kAgents, what, server_.served.Within(from, seconds(60)), server_.served.Peak(),
        server_.writes.Within(from, seconds(60)), server_.writes.Peak(), server_.refused.Peak());
    // Under a sanitizer there are fewer agents.
    if (!kSanitized) ExpectDocumented(what, server_.served.Within(from, seconds(60)));
  }
  // docs/scale.md has the simulated figures, to a tenth: "| what | arithmetic | first minute | peak
  // |".
  void ExpectDocumented(const std::string& what, int first_minute) const {
    const auto page = ReadFile(RESMGR_SOURCE_DIR "/docs/scale.md", size_t{1} << 20);
    ASSERT_THAT(page, IsOk());
    const size_t row = page->find("\n| " + what);
    ASSERT_NE(row, std::string::npos) << what;
    std::array<std::string, 5> cells;
    size_t at = row + 1;
    for (std::string& cell : cells) {
      const size_t end = page->find('|', at);
      ASSERT_NE(end, std::string::npos) << what;
      cell = page->substr(at, end - at);
      std::erase_if(cell, [](char c) { return c == ' ' || c == ','; });
      at = end + 1;
    }
    EXPECT_NEAR(std::stoi(cells[3]), first_minute, first_minute / 10) << what;
    EXPECT_NEAR(std::stoi(cells[4]), server_.served.Peak(), server_.served.Peak() / 10) << what;
  }

  ManualClock timers_;
  CountingServer server_{timers_};
  std::vector<Node> nodes_;
  uint64_t seed_ = 4711;
};

TEST_F(FleetTest, AllStartAtTheSameTime) {
  const auto start = timers_.Steady();
  StartAgents();
  Run(kStartSpread + seconds(10));
  Tell("first start", start);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_EQ(server_.watches(), size_t{3} * kAgents);
  Forget();

  const auto again = timers_.Steady();
  StartAgents();
  Run(kStartSpread + seconds(10));
  Tell("later start", again);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_EQ(server_.writes.Peak(), 0) << "the nodes show it already";
}

TEST_F(FleetTest, TheDefaultMapChanges) {
  StartAndSettle();
  const auto change = timers_.Steady();
  server_.SetMap("second");
  Run(seconds(76));
  Tell("another default map", change);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_GE(server_.writes.Within(change, seconds(76)), kAgents);
  Forget();

  const auto rejection = timers_.Steady();
  server_.SetMap("bad");
  Run(seconds(151));
  Tell("a default map that is rejected", rejection);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_GE(server_.writes.Within(rejection, seconds(151)), 2 * kAgents) << "with their Events";
}

TEST_F(FleetTest, ContainersWithExclusiveCpusComeAndGo) {
  StartAndSettle();
  const auto start = timers_.Steady();
  size_t node = 0;
  for (int second = 0; second < 180; ++second) {
    for (int i = 0; i < kAgents / 100; ++i)
      nodes_[node++ % nodes_.size()].daemon->Allocate(second);
    Run(seconds(1));
  }
  Tell("exclusive containers start or end", start);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_GE(server_.writes.Within(start, seconds(180)), kAgents);
}

// The same changes, for schedulers that wait for them; and more of them on one node than it writes.
TEST_F(FleetTest, SchedulersAreToldOfPodsThatComeAndGo) {
  StartAndSettle();
  for (const Node& node : nodes_)
    node.daemon->TellSchedulers(64);
  Run(seconds(160));
  Forget();
  const auto start = timers_.Steady();
  size_t changed = 0;
  for (int second = 0; second < 100; ++second) {
    for (int i = 0; i < kAgents / 100; ++i)
      nodes_[changed++].daemon->TellSchedulers(second % 60);
    Run(seconds(1));
  }
  Run(seconds(20));
  Tell("schedulers are told of pods that come and go", start);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_GE(server_.writes.Within(start, seconds(120)), kAgents);
  Forget();
  for (int i = 0; i < 100; ++i) {
    nodes_[0].daemon->TellSchedulers(i % 60);
    Run(milliseconds(100));
  }
  EXPECT_LE(server_.writes.Peak(), 2) << "one second of the clock has parts of two";
}

// All daemons get the driver for claims by one ConfigMap. Then containers with exclusive CPUs come
// and go; and at last schedulers and annotations tell of the same containers.
TEST_F(FleetTest, ClaimsAreSwitchedOnAndFollowContainers) {
  StartAndSettle();
  const auto tell_for = [this](seconds time, int cpus) {
    for (seconds past(0); past < time; past += seconds(10)) {
      for (const Node& node : nodes_)
        node.daemon->TellDevices(cpus);
      Run(seconds(10));
    }
  };
  const auto on = timers_.Steady();
  const auto most = std::chrono::ceil<seconds>(kStartSpread) + seconds(80);
  tell_for(most, 64);
  Tell("claims are switched on at all nodes at once", on);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_EQ(server_.writes.Within(on, most), kAgents);
  EXPECT_EQ(server_.watches(), size_t{4} * kAgents);
  Forget();
  tell_for(seconds(60), 64);
  EXPECT_EQ(server_.served.Peak(), 0) << "the same devices";

  size_t changed = 0;
  const auto change = [&](int first, const std::function<void(FleetDaemon&, int)>& tell) {
    for (int second = first; second < first + 100; ++second) {
      for (int i = 0; i < kAgents / 100; ++i)
        tell(*nodes_[changed++ % nodes_.size()].daemon, 1 + second % 60);
      Run(seconds(1));
    }
    Run(seconds(80));
  };
  const auto alone = timers_.Steady();
  change(0, [](FleetDaemon& daemon, int cpus) { daemon.TellDevices(cpus); });
  Tell("ResourceSlices follow exclusive containers", alone);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_EQ(server_.writes.Within(alone, seconds(180)), kAgents);

  for (const Node& node : nodes_)
    node.daemon->TellSchedulers(64);
  Run(seconds(160));
  Forget();
  const auto together = timers_.Steady();
  change(7, [](FleetDaemon& daemon, int cpus) {
    daemon.TellDevices(cpus);
    daemon.TellSchedulers(cpus);
    daemon.Allocate(cpus);
  });
  Tell("all three together", together);
  EXPECT_LE(server_.served.Peak(), 2 * kMost);
  EXPECT_EQ(server_.writes.Within(together, seconds(180)), 3 * kAgents);
}

TEST_F(FleetTest, PodsOfAllNodesAreRefusedAgainAndAgain) {
  StartAndSettle();
  const auto start = timers_.Steady();
  for (int second = 0; second < 300; ++second) {
    for (const Node& node : nodes_)
      node.daemon->Refuse(second % 10);
    Run(seconds(1));
  }
  Tell("pods of every node are refused", start);
  EXPECT_LE(server_.served.Peak(), kMost * 2 / 3);
  EXPECT_GE(server_.writes.Within(start, seconds(300)), kAgents);
}

TEST_F(FleetTest, ADefaultMapMovesContainers) {
  StartAndSettle();
  for (const Node& node : nodes_)
    node.daemon->HavePods(5);
  const auto change = timers_.Steady();
  server_.SetMap("second");
  Run(seconds(300));
  Tell("another default map, by which containers move", change);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_GE(server_.writes.Within(change, seconds(300)), 2 * kAgents) << "with their Events";
}

TEST_F(FleetTest, TheServerIsAwayForFiveMinutes) {
  StartAndSettle();
  server_.GoAway();
  Run(std::chrono::minutes(5));
  server_.ComeBack();
  const auto back = timers_.Steady();
  Run(std::chrono::minutes(8));
  Tell("an outage of five minutes", back);
  EXPECT_LE(server_.served.Peak(), kMost);
  EXPECT_EQ(server_.watches(), size_t{3} * kAgents) << "all are back";
  EXPECT_EQ(server_.writes.Peak(), 0);
}

}  // namespace
}  // namespace resmgr::test
