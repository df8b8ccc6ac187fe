// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/engine_runtime.h"

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/docker/engine_inspector.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/docker/testing/fake_engine.h"
#include "pkg/log/log.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::docker {
namespace {

using test::Must;
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

// Answers other requests than one for the list with this error.
FakeEngine::Answer ListsAndFails(int status) {
  return [status](const FakeEngine::Request& request) {
    return request.line.starts_with("GET /containers/json?all=1 ")
               ? JsonReply(200, kList)
               : JsonReply(status, R"({"message":"hangs"})");
  };
}

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
  const auto all = Must(List());
  ASSERT_EQ(all.pods.size(), 1U);
  EXPECT_EQ(all.pods[0].id, PodSandboxId("s1"));
  EXPECT_EQ(all.pods[0].qos, QosClass::kBurstable);
  EXPECT_TRUE(all.stopped_pods.empty());
  ASSERT_EQ(all.containers.size(), 1U) << "one was removed meanwhile, one is no pod's";
  const RuntimeContainer& container = all.containers[0];
  EXPECT_EQ(container.name, "main");
  EXPECT_EQ(container.state, ContainerState::kRunning);
  EXPECT_EQ(container.resources.cpuset_cpus, "1");
  EXPECT_EQ(container.started_at,
            std::chrono::system_clock::from_time_t(1577934245) + std::chrono::milliseconds(600));
}

TEST_F(EngineRuntimeTest, OthersAreContainersOfOnePodWhereTheyShare) {
  Start(Lists());
  const auto all = Must(List(Others::kShare));
  EXPECT_EQ(all.pods.size(), 2U);
  EXPECT_EQ(all.containers.size(), 2U);
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
  Start(ListsAndFails(500));
  const auto all = Must(List());
  EXPECT_EQ(all.unclear.containers.size(), 2U);
  EXPECT_EQ(all.unclear.pods.size(), 1U);
}

TEST_F(EngineRuntimeTest, AListEndsWhenDockerdIsLost) {
  Start(ListsAndFails(503));
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

// dockerd may hold the lock of a container for as long as its processes take to end.
TEST_F(EngineRuntimeTest, InspectionsThatHangDelayNoUpdate) {
  std::vector<std::string> list;
  for (size_t i = 0; i < 2 * EngineClient::kParallel; ++i) {
    list.push_back(
        fmt::format(R"({{"Id":"s{0}","Names":["/k8s_POD_web_shop_u{0}_0"],"State":"running",)"
                    R"("Labels":{{"io.kubernetes.docker.type":"podsandbox"}}}})",
                    i));
  }
  Start([listed = fmt::format("[{}]", fmt::join(list, ","))](const FakeEngine::Request& request) {
    if (request.line.starts_with("POST")) return JsonReply(200, "{}");
    const bool lists = request.line.starts_with("GET /containers/json?all=1 ");
    return lists ? JsonReply(200, listed) : std::string();
  });
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  runtime.ListAll({}, [](const StatusOr<RuntimeInventory>&) {});
  ASSERT_TRUE(test::RunUntil(
      loop_, [this] { return engine_->requests().size() > EngineClient::kParallel; }));
  Status updated = Internal("not told");
  runtime.UpdateContainer(ContainerId("c1"), {.cpus = *CpuSet::Parse("2")}, [&](Status status) {
    updated = std::move(status);
    loop_.Stop();
  });
  Run();
  EXPECT_TRUE(updated.ok()) << updated;
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
  runtime.Start({.happened = [&](const ContainerEvent& event) {
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
  runtime.Start({.happened = [&](const ContainerEvent& event) {
    told.push_back(event.id + " " + event.name);
    if (event.kind == ContainerEvent::Kind::kStopped) loop_.Stop();
  }});
  Run();
  EXPECT_THAT(told, ElementsAre("o1 festive_bose", "c1 ", "o1 mine", "o1 mine"));
}

TEST_F(EngineRuntimeTest, ListsTellWhatIsNeitherStartedNorUpdatedAnyMore) {
  const auto states =
      Must(ReadContainerList(R"([{"Id":"a","State":"exited"},{"Id":"b","State":"dead"},
      {"Id":"c","State":"removing"},{"Id":"d","State":"running"}])"));
  std::string dead;
  for (const EngineContainer& each : states) {
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
  runtime.Start({.disconnected = [&] {
    if (++losses == 7) return loop_.Stop();
    EXPECT_TRUE(runtime.EnsureConnected().ok());
  }});
  Run();
  SetLogWriter(nullptr);
  const size_t first = log.find("lost the Docker engine");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("lost the Docker engine", first + 1), std::string::npos) << log;
}

TEST_F(EngineRuntimeTest, IsConnectedAsSoonAsThereIsADockerd) {
  EngineRuntime runtime(loop_, dir_.File("e.sock"), Others::kPass);
  runtime.Start({.connected = [this] { loop_.Stop(); }});
  EXPECT_EQ(runtime.EnsureConnected().code(), StatusCode::kUnavailable);
  const auto later = loop_.After(std::chrono::milliseconds(150),
                                 [this] { Start([](const FakeEngine::Request&) { return ""; }); });
  Run();
  EXPECT_TRUE(runtime.EnsureConnected().ok());
}

constexpr const char* kToldList = R"([
  {"Id":"s1","Names":["/k8s_POD_web_shop_u1_3"],"State":"created",
   "Labels":{"io.kubernetes.docker.type":"podsandbox"}},
  {"Id":"c1","Names":["/k8s_main_web_shop_u1_2"],"State":"running",
   "Labels":{"io.kubernetes.sandbox.id":"s1"}},
  {"Id":"c2","Names":["/k8s_gone_web_shop_u1_0"],"State":"running",
   "Labels":{"io.kubernetes.sandbox.id":"s1"}},
  {"Id":"o1","Names":["/plain"],"State":"running","Labels":{}}])";

constexpr const char* kToldSandbox = R"({"Id":"s1","Name":"/k8s_POD_web_shop_u1_3",
  "State":{"Status":"created","Pid":0},"NetworkSettings":{"IPAddress":"10.0.0.7"},
  "Config":{"Labels":{"io.kubernetes.docker.type":"podsandbox","app":"web","annotation.a":"b"}},
  "HostConfig":{"CgroupParent":"kubepods-burstable-podu1.slice","Runtime":"runc","CpuShares":2}})";

constexpr const char* kToldContainer = R"({"Id":"c1","Name":"/k8s_main_web_shop_u1_2",
  "Created":"2020-01-02T03:04:04.25Z",
  "State":{"Status":"exited","Pid":0,"ExitCode":137,"OOMKilled":true,"Error":"why",
           "StartedAt":"2020-01-02T03:04:05.000000006Z","FinishedAt":"0001-01-01T00:00:00Z"},
  "Config":{"Image":"img","Env":["A=1","B"],"Cmd":["run"],
            "Labels":{"io.kubernetes.sandbox.id":"s1","annotation.x":"y"}},
  "HostConfig":{"CgroupParent":"/kubepods/podu1","CpuShares":512,"Memory":64,"MemorySwap":-1,
                "Binds":["/h:/c:ro"]}})";

std::optional<std::string> AnswerOf(const FakeEngine::Request& request) {
  const auto asks = [&request](std::string_view target) {
    return request.line.find(std::string(target) + " HTTP") != std::string::npos;
  };
  if (asks("/containers/json?all=1")) return JsonReply(200, kToldList);
  if (asks("/containers/s1/json")) return JsonReply(200, kToldSandbox);
  if (asks("/containers/c1/json")) return JsonReply(200, kToldContainer);
  if (asks("/version")) return JsonReply(200, R"({"Version":"20.10.24+dfsg1"})");
  if (asks("/images/local%2Fx%3A1/json")) {
    return JsonReply(200, R"({"RepoDigests":["x@sha256:1"],
        "Config":{"Entrypoint":["/e"],"Cmd":null,"Env":["P=q"]}})");
  }
  if (request.line.starts_with("POST") || request.line.starts_with("DELETE"))
    return JsonReply(200, "{}");
  return JsonReply(404, R"({"message":"none"})");
}

class EngineInspectorTest : public EngineRuntimeTest {
 protected:
  using EngineRuntimeTest::Start;
  void Start() { Start(AnswerOf); }
  // Runs `ask` and returns its result.
  template <typename Result>
  Result Told(const std::function<void(EngineInspector&, std::function<void(Result)>)>& ask,
              Others others = Others::kPass) {
    EngineInspector inspector(loop_, dir_.File("e.sock"), others);
    std::optional<Result> told;
    ask(inspector, [this, &told](Result result) {
      told.emplace(std::move(result));
      loop_.Stop();
    });
    EXPECT_FALSE(told.has_value()) << "inside the call";
    Run();
    return told ? *std::move(told) : Result(Internal("nothing"));
  }
  StatusOr<ContainerFacts> Container(const char* id, Others others = Others::kPass) {
    return Told<StatusOr<ContainerFacts>>(
        [id](auto& inspector, auto done) {
          inspector.InspectContainer(ContainerId(id), std::move(done));
        },
        others);
  }
  StatusOr<SandboxFacts> Sandbox(const char* id, Others others = Others::kPass) {
    return Told<StatusOr<SandboxFacts>>(
        [id](auto& inspector, auto done) {
          inspector.InspectSandbox(PodSandboxId(id), std::move(done));
        },
        others);
  }
  StatusOr<RuntimeAccess::Everything> All(Others others = Others::kPass) {
    return Told<StatusOr<RuntimeAccess::Everything>>(
        [](auto& inspector, auto done) { inspector.InspectAll(std::move(done)); }, others);
  }
};

TEST_F(EngineInspectorTest, TellsOfASandbox) {
  Start();
  const auto facts = Must(Sandbox("s1"));
  EXPECT_EQ(facts.pod.id, PodSandboxId("s1"));
  EXPECT_EQ(facts.pod.name, "web");
  EXPECT_EQ(facts.pod.qos, QosClass::kBurstable);
  EXPECT_EQ(facts.pod.cgroup_parent,
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu1.slice");
  EXPECT_EQ(facts.pod.annotations, (StringMap{{"a", "b"}}));
  EXPECT_EQ(facts.pod.resources, LinuxResources()) << "the sandbox's own are not the pod's";
  EXPECT_EQ(facts.attempt, 3U);
  EXPECT_TRUE(facts.ready);
  EXPECT_THAT(facts.ips, ElementsAre("10.0.0.7"));
  EXPECT_EQ(facts.cgroups_path, "kubepods-burstable-podu1.slice:docker:s1");
  EXPECT_EQ(Sandbox("c1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Sandbox("none").status().code(), StatusCode::kNotFound);
}

TEST_F(EngineInspectorTest, TellsOfAContainer) {
  Start();
  const auto facts = Must(Container("c1"));
  EXPECT_EQ(facts.container.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(facts.container.name, "main");
  EXPECT_EQ(facts.container.attempt, 2U);
  EXPECT_EQ(facts.container.state, ContainerState::kExited);
  EXPECT_EQ(facts.container.resources.cpu_shares, 512);
  EXPECT_EQ(facts.container.annotations, (StringMap{{"x", "y"}}));
  EXPECT_EQ(facts.created_at, 1'577'934'244'250'000'000);
  EXPECT_EQ(facts.started_at, 1'577'934'245'000'000'006);
  EXPECT_EQ(facts.finished_at, 0);
  EXPECT_EQ(facts.exit_code, 137);
  EXPECT_EQ(facts.reason, "OOMKilled");
  EXPECT_EQ(facts.message, "why");
  EXPECT_EQ(facts.image, "img");
  EXPECT_EQ(facts.cgroups_path, "/kubepods/podu1/c1");
  EXPECT_EQ(facts.details.memory_swap_limit, -1);
  EXPECT_EQ(facts.details.environment.size(), 1U) << "B is none";
  EXPECT_EQ(facts.details.mounts.size(), 1U);
  EXPECT_EQ(Container("s1").status().code(), StatusCode::kNotFound);
}

TEST_F(EngineInspectorTest, TellsOfAll) {
  Start();
  const auto all = Must(All());
  EXPECT_EQ(all.sandboxes.size(), 1U);
  EXPECT_EQ(all.containers.size(), 1U) << "one is gone, one is no pod's";
}

TEST_F(EngineInspectorTest, WhatCannotBeInspectedIsToldAsListed) {
  Start([](const FakeEngine::Request& request) -> std::optional<std::string> {
    if (request.line.find("/json?all") != std::string::npos) return JsonReply(200, kToldList);
    return JsonReply(500, R"({"message":"hangs"})");
  });
  const auto all = Must(All(Others::kShare));
  EXPECT_EQ(all.sandboxes.size(), 2U);
  EXPECT_EQ(all.containers.size(), 3U);
}

TEST_F(EngineInspectorTest, ThePodOfOthersIsNotDockerds) {
  Start();
  const auto facts = Sandbox("docker", Others::kShare);
  EXPECT_EQ(facts.status().code(), StatusCode::kNotFound) << "here there is no ping either";
  Start([](const FakeEngine::Request&) { return JsonReply(200, "OK"); });
  EXPECT_TRUE(Sandbox("docker", Others::kShare).ok());
}

TEST_F(EngineInspectorTest, TellsVersionAndImage) {
  Start();
  const auto version = Must(Told<StatusOr<RuntimeAccess::Version>>(
      [](auto& inspector, auto done) { inspector.AskVersion(std::move(done)); }));
  EXPECT_EQ(version.name, "docker");
  EXPECT_EQ(version.version, "20.10.24+dfsg1");
  const auto image = Must(Told<StatusOr<ImageFacts>>([](auto& inspector, auto done) {
    inspector.InspectImage(PodSandboxId("p1"), "local/x:1", std::move(done));
  }));
  EXPECT_THAT(image.entrypoint, ElementsAre("/e"));
  EXPECT_EQ(image.environment[0].value, "q");
  EXPECT_EQ(image.digest, "x@sha256:1");
}

TEST_F(EngineInspectorTest, UpdatesStopsAndRemoves) {
  Start();
  ResourceChange change;
  change.resources.cpu_shares = 2;
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.UpdateContainer(ContainerId("c1"), change, std::move(done));
              }).ok());
  change.unified = {{"pids.max", "no"}};
  EXPECT_EQ(Told<Status>([&](auto& inspector, auto done) {
              inspector.UpdateContainer(ContainerId("c1"), change, std::move(done));
            }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.StopContainer(ContainerId("c1"), std::chrono::seconds(3),
                                        std::move(done));
              }).ok());
  EXPECT_TRUE(Told<Status>([&](auto& inspector, auto done) {
                inspector.RemoveSandbox(PodSandboxId("s1"), std::move(done));
              }).ok());
  std::vector<std::string> lines;
  for (const auto& request : engine_->requests())
    if (!request.line.starts_with("GET")) lines.push_back(request.line + request.body);
  EXPECT_THAT(lines, ElementsAre(R"(POST /containers/c1/update HTTP/1.0{"CpuShares":2})",
                                 "POST /containers/c1/stop?t=3 HTTP/1.0",
                                 "DELETE /containers/s1?force=1&v=1 HTTP/1.0"));
}

// A container whose processes cannot be killed hangs in its stop.
TEST_F(EngineInspectorTest, StopsThatHangDelayNoQuestion) {
  Start([](const FakeEngine::Request& request) {
    return request.line.starts_with("POST") ? "" : AnswerOf(request);
  });
  EngineInspector inspector(loop_, dir_.File("e.sock"), Others::kPass);
  for (size_t i = 0; i < EngineClient::kParallel; ++i)
    inspector.StopContainer(ContainerId("c2"), std::chrono::seconds(60), [](const Status&) {});
  bool told = false;
  inspector.InspectContainer(ContainerId("c1"), [&](const StatusOr<ContainerFacts>& facts) {
    told = facts.ok();
    loop_.Stop();
  });
  Run();
  EXPECT_TRUE(told);
}

TEST_F(EngineInspectorTest, WithoutADockerdNothingIsKnown) {
  EXPECT_EQ(All().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Container("c1").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace resmgr::docker
