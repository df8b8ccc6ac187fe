// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_runtime.h"

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/docker/engine_inventory.h"
#include "pkg/docker/testing/fake_engine.h"
#include "pkg/log/log.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kList = R"([
  {"Id":"s1","Names":["/k8s_POD_web_shop_u1_0"],"State":"running",
   "Labels":{"io.kubernetes.docker.type":"podsandbox","io.kubernetes.pod.name":"web"}},
  {"Id":"c1","Names":["/k8s_main_web_shop_u1_0"],"State":"running",
   "Labels":{"io.kubernetes.sandbox.id":"s1","io.kubernetes.container.name":"main"}},
  {"Id":"c2","Names":["/k8s_init_web_shop_u1_0"],"State":"exited",
   "Labels":{"io.kubernetes.sandbox.id":"s1","io.kubernetes.container.name":"init"}},
  {"Id":"o1","Names":["/plain"],"State":"running","Labels":{}}])";

std::string Inspection(const std::string& id) {
  return R"({"Id":")" + id + R"(","Name":"/x","State":{"Status":"running",)" +
         R"("StartedAt":"2020-01-02T03:04:05.6Z"},"HostConfig":{"CpuShares":512,)" +
         R"("CpusetCpus":"1","CgroupParent":"/kubepods/burstable/podu1"}})";
}

class EngineRuntimeTest : public testing::Test {
 protected:
  void Start(FakeEngine::Answer answer) { engine_.emplace(dir_.File("e.sock"), std::move(answer)); }
  // Runs the loop until it is stopped, or for ten seconds.
  void Run() {
    const auto limit = loop_.After(std::chrono::seconds(10), [this] {
      ADD_FAILURE() << "nothing happened";
      loop_.Stop();
    });
    loop_.Run();
  }
  StatusOr<RuntimeInventory> List(Others others = Others::kPass) {
    EngineRuntime runtime(loop_, dir_.File("e.sock"), others);
    StatusOr<RuntimeInventory> listed = Internal("not told");
    runtime.ListAll({}, [this, &listed](StatusOr<RuntimeInventory> all) {
      listed = std::move(all);
      loop_.Stop();
    });
    Run();
    return listed;
  }

  Status Update(const ResourceValues& values) {
    EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
    Status done = Internal("not told");
    runtime.UpdateContainer(ContainerId("c1"), values, [&](Status status) {
      done = std::move(status);
      loop_.Stop();
    });
    Run();
    return done;
  }

  TempDir dir_;
  EventLoop loop_;
  std::optional<FakeEngine> engine_;
};

FakeEngine::Answer Lists() {
  return [](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("GET /containers/json?all=1 ")) return JsonReply(200, kList);
    const std::string id = request.line.substr(16, 2);
    if (id == "c2") return JsonReply(404, R"({"message":"gone"})");
    return JsonReply(200, Inspection(id));
  };
}

TEST_F(EngineRuntimeTest, ListsPodsAndTheirContainers) {
  Start(Lists());
  const auto all = List();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->pods.size(), 1U);
  EXPECT_EQ(all->pods[0].id, PodSandboxId("s1"));
  EXPECT_EQ(all->pods[0].qos, QosClass::kBurstable);
  EXPECT_TRUE(all->stopped_pods.empty());
  ASSERT_EQ(all->containers.size(), 1U) << "one was removed meanwhile, one is no pod's";
  const RuntimeContainer& container = all->containers[0];
  EXPECT_EQ(container.name, "main");
  EXPECT_EQ(container.state, ContainerState::kRunning);
  EXPECT_EQ(container.resources.cpuset_cpus, "1");
  EXPECT_EQ(container.started_at,
            std::chrono::system_clock::from_time_t(1577934245) + std::chrono::milliseconds(600));
}

TEST_F(EngineRuntimeTest, OthersAreContainersOfOnePodWhereTheyShare) {
  Start(Lists());
  const auto all = List(Others::kShare);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->pods.size(), 2U);
  EXPECT_EQ(all->containers.size(), 2U);
}

TEST_F(EngineRuntimeTest, AListThatFailsIsNone) {
  Start([](const FakeEngine::Request&) { return JsonReply(500, R"({"message":"disk"})"); });
  EXPECT_EQ(List().status().code(), StatusCode::kInternal);
}

TEST_F(EngineRuntimeTest, NonsenseIsNoList) {
  Start([](const FakeEngine::Request&) { return JsonReply(200, "[{\"Id\":"); });
  EXPECT_FALSE(List().ok());
}

TEST_F(EngineRuntimeTest, OneThatCannotBeInspectedIsUnclear) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("GET /containers/json?all=1 ")) return JsonReply(200, kList);
    return JsonReply(500, R"({"message":"hangs"})");
  });
  const auto all = List();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->unclear.containers.size(), 2U);
  EXPECT_EQ(all->unclear.pods.size(), 1U);
}

TEST_F(EngineRuntimeTest, AListEndsWhenDockerdIsLost) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.starts_with("GET /containers/json?all=1 ")) return JsonReply(200, kList);
    return JsonReply(503, R"({"message":"it ends"})");
  });
  EXPECT_EQ(List().status().code(), StatusCode::kUnavailable);
}

TEST_F(EngineRuntimeTest, WithoutADockerdThereIsNoList) {
  EXPECT_EQ(List().status().code(), StatusCode::kUnavailable);
}

TEST_F(EngineRuntimeTest, UpdatesSayWhatChanges) {
  Start([](const FakeEngine::Request&) { return JsonReply(200, R"({"Warnings":null})"); });
  const Status done = Update({.cpus = *CpuSet::Parse("2")});
  EXPECT_TRUE(done.ok()) << done;
  const auto request = engine_->requests().at(0);
  EXPECT_EQ(request.line, "POST /containers/c1/update HTTP/1.0");
  EXPECT_EQ(request.body, R"({"CpusetCpus":"2"})");
}

// Containers of `docker run --cpus` can only be updated in this form.
TEST_F(EngineRuntimeTest, AContainerWithNanoCpusIsUpdatedByThem) {
  Start([](const FakeEngine::Request& request) {
    if (request.body.find("CpuPeriod") == std::string::npos) return JsonReply(200, "{}");
    return JsonReply(409, R"({"message":"Conflicting options: CPU Period cannot be updated as )"
                          R"(NanoCPUs has already been set"})");
  });
  const Status done = Update(
      {.cpus = *CpuSet::Parse("2"), .cpu_shares = 512, .cpu_quota = 50000, .cpu_period = 100000});
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(engine_->requests().at(1).body,
            R"({"CpuShares":512,"CpusetCpus":"2","NanoCpus":500000000})");
}

TEST_F(EngineRuntimeTest, AnUpdateOfWhatIsGoneIsNotFound) {
  Start([](const FakeEngine::Request&) { return JsonReply(404, R"({"message":"none"})"); });
  EXPECT_EQ(Update({}).code(), StatusCode::kNotFound);
}

TEST_F(EngineRuntimeTest, EventsAreToldAndTheirEndIsTheEndOfDockerd) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    EXPECT_THAT(request.line, HasSubstr("GET /events?since="));
    return "HTTP/1.0 200 OK\r\nContent-Length: 190\r\n\r\n"
           "{\"Type\":\"container\",\"Action\":\"die\",\"Actor\":{\"ID\":\"c1\"}}\n"
           "{\"Type\":\"container\",\"Action\":\"exec_start: x\",\"Actor\":{\"ID\":\"c1\"}}\n"
           "no json\n"
           "{\"Type\":\"container\",\"Action\":\"destroy\",\"Actor\":{\"ID\":\"c1\"}}\n" +
           std::string(100, '\n');
  });
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  std::vector<std::string> told;
  runtime.Start({.connected = [&told] { told.emplace_back("connected"); },
                 .disconnected =
                     [&] {
                       told.emplace_back("disconnected");
                       loop_.Stop();
                     },
                 .happened =
                     [&told](const ContainerEvent& event) {
                       const bool died = event.kind == ContainerEvent::Kind::kStopped;
                       told.push_back((died ? "died " : "deleted ") + event.id);
                     }});
  Run();
  EXPECT_THAT(told, ElementsAre("connected", "died c1", "deleted c1", "disconnected"));
}

// A stream with these events that stays open; other requests succeed.
FakeEngine::Answer TellsEvents(const std::string& events) {
  return [events](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (!request.line.starts_with("GET /events")) return JsonReply(200, "{}");
    return fmt::format("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{}", events.size() + 1,
                       events);
  };
}

std::string EventLine(const std::string& action, const std::string& id, const std::string& more) {
  return fmt::format(
      "{{\"Type\":\"container\",\"Action\":\"{}\",\"Actor\":{{\"ID\":\"{}\",\"Attributes\":{{{}}}}}"
      "}}\n",
      action, id, more);
}

// dockerd reports each update, also our own.
TEST_F(EngineRuntimeTest, UpdatesOfOtherClientsAreTold) {
  const auto updated = std::make_shared<std::promise<void>>();
  Start([sent = 0,
         updated](const FakeEngine::Request& request) mutable -> std::optional<std::string> {
    if (request.line.starts_with("POST")) {
      updated->set_value();
      return JsonReply(200, "{}");
    }
    if (++sent > 1) return "";
    const std::string events = EventLine("update", "c1", "") + EventLine("update", "c1", "") +
                               EventLine("update", "c2", "") + EventLine("die", "c3", "");
    updated->get_future().wait_for(std::chrono::seconds(20));  // our own update
    return fmt::format("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{}", events.size() + 1,
                       events);
  });
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  std::vector<std::string> told;
  runtime.Start({.connected = [] {},
                 .disconnected = [] {},
                 .happened =
                     [&](const ContainerEvent& event) {
                       if (event.kind == ContainerEvent::Kind::kStopped) return loop_.Stop();
                       EXPECT_EQ(event.kind, ContainerEvent::Kind::kUpdated);
                       told.push_back(event.id);
                     }});
  runtime.UpdateContainer(ContainerId("c1"), {.cpus = *CpuSet::Parse("2")}, [](const Status&) {});
  Run();
  EXPECT_THAT(told, ElementsAre("c1", "c2"));
}

// dockerd chooses a name if `docker run` gives none.
TEST_F(EngineRuntimeTest, EventsTellTheNamesOfContainersThatAreNoPods) {
  const std::string pods = R"("io.kubernetes.sandbox.id":"s1","name":"k8s_main_web_shop_u1_0")";
  Start(TellsEvents(EventLine("create", "o1", R"("name":"festive_bose")") +
                    EventLine("start", "c1", pods) +
                    EventLine("rename", "o1", R"("name":"mine","oldName":"/festive_bose")") +
                    EventLine("die", "o1", R"("name":"mine")")));
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kShare);
  std::vector<std::string> told;
  runtime.Start({.connected = [] {},
                 .disconnected = [] {},
                 .happened =
                     [&](const ContainerEvent& event) {
                       told.push_back(event.id + " " + event.name);
                       if (event.kind == ContainerEvent::Kind::kStopped) loop_.Stop();
                     }});
  Run();
  EXPECT_THAT(told, ElementsAre("o1 festive_bose", "c1 ", "o1 mine", "o1 mine"));
}

TEST_F(EngineRuntimeTest, ListsTellWhatIsNeitherStartedNorUpdatedAnyMore) {
  const auto states = ReadContainerList(R"([{"Id":"a","State":"exited"},{"Id":"b","State":"dead"},
      {"Id":"c","State":"removing"},{"Id":"d","State":"running"}])");
  ASSERT_TRUE(states.ok());
  std::string dead;
  for (const EngineContainer& each : *states) {
    const RuntimeContainer listed = ToContainer(each, {});
    EXPECT_EQ(listed.state == ContainerState::kExited, each.id.value() != "d");
    if (listed.dead) dead += each.id.value();
  }
  EXPECT_EQ(dead, "bc");
}

// A dockerd that starts or ends drops connections at once, and each client's call makes one.
TEST_F(EngineRuntimeTest, ALossThatRepeatsIsToldOnce) {
  std::string log;
  SetLogWriter([&log](std::string_view line) { log += line; });
  Start([](const FakeEngine::Request&) { return "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"; });
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  int losses = 0;
  runtime.Start({.connected = [] {},
                 .disconnected =
                     [&] {
                       if (++losses == 7) return loop_.Stop();
                       EXPECT_TRUE(runtime.EnsureConnected().ok());
                     },
                 .happened = [](const ContainerEvent&) {}});
  Run();
  SetLogWriter(nullptr);
  const size_t first = log.find("lost the Docker engine");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("lost the Docker engine", first + 1), std::string::npos) << log;
}

TEST_F(EngineRuntimeTest, IsConnectedAsSoonAsThereIsADockerd) {
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  runtime.Start({.connected = [this] { loop_.Stop(); },
                 .disconnected = [] {},
                 .happened = [](const ContainerEvent&) {}});
  EXPECT_EQ(runtime.EnsureConnected().code(), StatusCode::kUnavailable);
  const auto later = loop_.After(std::chrono::milliseconds(150),
                                 [this] { Start([](const FakeEngine::Request&) { return ""; }); });
  Run();
  EXPECT_TRUE(runtime.EnsureConnected().ok());
}

}  // namespace
}  // namespace resmgr::docker
