// SPDX-License-Identifier: Apache-2.0
// NRI plugins behind the real relay: the runtime receives their changes, they get all events, and
// their refusals count.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/log/log.h"
#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/stages/node_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::test {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;
using testing::ElementsAre;

using nri::FoundFiles;
using nri::HostFiles;
using nri::test::FakePlugin;
using nri::test::FakePluginOptions;

// A client, and a guaranteed pod that it has run.
struct HostedPod {
  StatusOr<std::string> Create(const std::string& name) {
    return client.CreateContainer(id, MakeGuaranteedPod("g"), MakeGuaranteedContainer(name, 1));
  }

  CriClient client;
  std::string id = Ok(client.RunPod(MakeGuaranteedPod("g")));
};

class NriHostTest : public StagesTest {
 protected:
  ~NriHostTest() override {
    if (!plugins_.empty()) OnLoop([this] { plugins_.clear(); });
    Stop();
  }

  // Plugins that hang are given up after `timeout`: soon where a test waits for that, and late
  // enough for a busy machine where none hangs.
  void StartHost(nri::NriStageOptions options = {},
                 std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    NriHostingOptions hosting{.stage = std::move(options)};
    hosting.host.socket = Socket();
    hosting.host.plugin_path = "";
    hosting.host.settings.request_timeout = timeout;
    Start({}, std::move(hosting));
  }

  static constexpr std::chrono::milliseconds kHang{500};

  // Waits until the loop sees the condition.
  void Until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    bool met = false;
    while (!met && std::chrono::steady_clock::now() < end)
      OnLoop([&] { met = condition(); });
    ASSERT_TRUE(met);
  }

  // A plugin that is ready; used on the loop only.
  FakePlugin& Connect(FakePluginOptions options = {},
                      const std::function<void(FakePlugin&)>& prepare = {}) {
    FakePlugin* plugin = nullptr;
    Until([&] {
      StatusOr<UniqueFd> socket = ConnectUnix(Socket());
      if (!socket.ok()) return false;
      plugin = plugins_
                   .emplace_back(
                       std::make_unique<FakePlugin>(loop(), *std::move(socket), std::move(options)))
                   .get();
      if (prepare) prepare(*plugin);
      return true;
    });
    Until([&] { return plugin->synchronized; });
    return *plugin;
  }

  std::vector<std::string> Told(const FakePlugin& plugin) {
    std::vector<std::string> told;
    OnLoop([&] { told = plugin.told; });
    return told;
  }

  // A plugin wants "/", below which there is always something mounted, as a read-only mount that is
  // not recursive. `announced`: the runtime says that it has recursively read-only ones.
  StatusOr<std::string> CreateWithMountOfRoot(bool announced) {
    cri::StatusResponse status;
    status.add_runtime_handlers()->mutable_features()->set_recursive_read_only_mounts(announced);
    runtime_.Script("Status", {.reply = std::vector{status.SerializeAsString()}});
    StartHost();
    Connect({}, [](FakePlugin& plugin) {
      plugin.create = [](const api::CreateContainerRequest&) {
        api::CreateContainerResponse response;
        api::Mount& mount = *response.mutable_adjust()->add_mounts();
        mount.set_destination("/host");
        mount.set_source("/");
        mount.set_type("bind");
        mount.add_options("bind");
        mount.add_options("ro");
        return response;
      };
    });
    return HostedPod{Client()}.Create("main");
  }

  // The configuration that the runtime was asked to create.
  cri::ContainerConfig Created() {
    cri::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(Received("CreateContainer")));
    return request.config();
  }

 private:
  std::string Socket() const { return File("nri.sock"); }

  std::vector<std::unique_ptr<FakePlugin>> plugins_;
};

TEST_F(NriHostTest, APluginAddsAVariableAndAnAnnotation) {
  StartHost();
  Connect({}, [](FakePlugin& plugin) {
    plugin.create = [](const api::CreateContainerRequest& request) {
      EXPECT_EQ(request.container().name(), "main");
      api::CreateContainerResponse response;
      auto& env = *response.mutable_adjust()->add_env();
      env.set_key("FROM_PLUGIN");
      env.set_value("yes");
      (*response.mutable_adjust()->mutable_annotations())["plugin"] = "here";
      return response;
    };
  });
  HostedPod pod{Client()};
  ASSERT_THAT(pod.Create("main"), IsOk());
  const cri::ContainerConfig config = Created();
  ASSERT_GE(config.envs_size(), 1);
  EXPECT_EQ(config.envs(config.envs_size() - 1).key(), "FROM_PLUGIN");
  EXPECT_EQ(config.annotations().at("plugin"), "here");
  // The policy's CPU is still there.
  EXPECT_FALSE(config.linux().resources().cpuset_cpus().empty());
}

TEST_F(NriHostTest, APluginHearsOfEverything) {
  StartHost();
  FakePlugin& plugin = Connect();
  HostedPod pod{Client()};
  const std::string id = Ok(pod.Create("main"));
  EXPECT_THAT(pod.client.StartContainer(id), IsOk());
  cri::LinuxContainerResources resources;
  resources.set_memory_limit_in_bytes(1 << 20);
  EXPECT_THAT(pod.client.UpdateContainer(id, resources), IsOk());
  EXPECT_THAT(pod.client.StopContainer(id), IsOk());
  EXPECT_THAT(pod.client.RemoveContainer(id), IsOk());
  EXPECT_THAT(pod.client.StopPod(pod.id), IsOk());
  EXPECT_THAT(pod.client.RemovePod(pod.id), IsOk());
  Until([&] { return plugin.told.back() == "RemovePodSandbox g"; });
  EXPECT_THAT(Told(plugin),
              ElementsAre("Configure", "Synchronize", "RunPodSandbox g", "CreateContainer g/main",
                          "PostCreateContainer g/main", "StartContainer g/main",
                          "PostStartContainer g/main", "UpdateContainer g/main",
                          "PostUpdateContainer g/main", "StopContainer g/main",
                          "RemoveContainer g/main", "StopPodSandbox g", "RemovePodSandbox g"));
}

TEST_F(NriHostTest, ARefusalFailsTheCreation) {
  StartHost();
  FakePlugin& plugin = Connect({}, [](FakePlugin& refusing) {
    refusing.create = [](const api::CreateContainerRequest&) {
      return FailedPrecondition("not this one");
    };
  });
  HostedPod pod{Client()};
  EXPECT_THAT(pod.Create("main"),
              Fails(StatusCode::kFailedPrecondition, "NRI plugin 10-fake: not this one"));
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
  // The plugin has seen the container, so it gets its end.
  Until([&] { return plugin.told.back() == "RemoveContainer g/main"; });
  EXPECT_THAT(Told(plugin),
              ElementsAre("Configure", "Synchronize", "RunPodSandbox g", "CreateContainer g/main",
                          "StopContainer g/main", "RemoveContainer g/main"));
}

TEST_F(NriHostTest, ASandboxThatAPluginRefusesIsRemoved) {
  StartHost();
  bool refuses = true;
  FakePlugin& plugin = Connect({}, [&refuses](FakePlugin& refusing) {
    refusing.event = [&refuses](const api::StateChangeEvent& event) {
      const bool run = event.event() == api::EVENT_RUN_POD_SANDBOX;
      return run && refuses ? FailedPrecondition("not here") : OkStatus();
    };
  });
  CriClient client = Client();
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")),
              Fails(StatusCode::kFailedPrecondition, "NRI plugin 10-fake: not here"));
  Until([&] { return plugin.told.back() == "RemovePodSandbox g"; });
  EXPECT_EQ(runtime_.Calls("StopPodSandbox").size(), 1u);
  EXPECT_EQ(runtime_.Calls("RemovePodSandbox").size(), 1u);
  EXPECT_THAT(Told(plugin), ElementsAre("Configure", "Synchronize", "RunPodSandbox g",
                                        "StopPodSandbox g", "RemovePodSandbox g"));
  OnLoop([&refuses] { refuses = false; });
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("g")), IsOk());
}

TEST_F(NriHostTest, AContainerWhoseStartAPluginRefusesIsStopped) {
  StartHost();
  Connect({}, [](FakePlugin& refusing) {
    refusing.event = [](const api::StateChangeEvent& event) {
      return event.event() == api::EVENT_START_CONTAINER ? FailedPrecondition("not now")
                                                         : OkStatus();
    };
  });
  HostedPod pod{Client()};
  const std::string id = Ok(pod.Create("main"));
  EXPECT_THAT(pod.client.StartContainer(id),
              Fails(StatusCode::kFailedPrecondition, "NRI plugin 10-fake: not now"));
  EXPECT_TRUE(runtime_.WaitForCalls("StopContainer", 1));
  EXPECT_EQ(runtime_.Calls("StopContainer").size(), 1u);
}

TEST_F(NriHostTest, AContainerIsCreatedWithoutAPluginThatHangs) {
  StartHost({}, kHang);
  FakePlugin& plugin = Connect();
  HostedPod pod{Client()};
  OnLoop([&plugin] { plugin.Hang(); });
  EXPECT_THAT(pod.Create("main"), IsOk());
}

TEST_F(NriHostTest, AHungValidatorRefusesOneCreation) {
  StartHost({}, kHang);
  FakePlugin& plugin = Connect({.events = 1 << (api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT - 1)});
  HostedPod pod{Client()};
  OnLoop([&plugin] { plugin.Hang(); });
  EXPECT_THAT(pod.Create("first"),
              Fails(StatusCode::kDeadlineExceeded,
                    testing::HasSubstr("NRI plugin 10-fake: it has not validated a container: no "
                                       "answer to ValidateContainerAdjustment within 500 ms")));
  EXPECT_THAT(pod.Create("second"), IsOk());
  Until([&] { return plugin.lost.has_value(); });
}

TEST_F(NriHostTest, AReadOnlyMountIsNotWritableFurtherBelow) {
  const auto created = CreateWithMountOfRoot(/*announced=*/false);
  EXPECT_EQ(created.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(created.status()), testing::HasSubstr("writable"));
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
}

TEST_F(NriHostTest, ARuntimeWithRecursivelyReadOnlyMountsIsAskedForOne) {
  ASSERT_THAT(CreateWithMountOfRoot(/*announced=*/true), IsOk());
  const cri::ContainerConfig config = Created();
  ASSERT_EQ(config.mounts_size(), 1);
  EXPECT_TRUE(config.mounts(0).readonly());
  EXPECT_TRUE(config.mounts(0).recursive_read_only());
}

TEST_F(NriHostTest, ADeviceThatIsLeftOutIsAWarning) {
  nri::UnsupportedPolicy ignored;
  ignored.Set(api::FIELD_DEVICES, FailurePolicy::kIgnore);
  std::string log;
  SetLogWriter([&log](std::string_view line) { log += line; });
  StartHost({.unsupported = ignored});
  Connect({}, [](FakePlugin& plugin) {
    plugin.create = [](const api::CreateContainerRequest&) {
      api::CreateContainerResponse response;
      api::LinuxDevice& device = *response.mutable_adjust()->mutable_linux()->add_devices();
      device.set_path("/dev/none");
      device.set_type("c");
      device.set_major(4095);  // which no driver has
      return response;
    };
  });
  HostedPod pod{Client()};
  EXPECT_THAT(pod.Create("main"), IsOk());
  std::string logged;
  OnLoop([&] { logged = log; });
  SetLogWriter(nullptr);
  EXPECT_THAT(logged, testing::HasSubstr("plugin \"10-fake\" wants to set Devices /dev/none"));
}

// This machine or the runtime has no RDT.
TEST_F(NriHostTest, AClassOfRdtFailsOneCreationAtMost) {
  runtime_.Script("CreateContainer",
                  {.times = 1,
                   .error = grpc::Status(grpc::StatusCode::UNKNOWN,
                                         "RDT disabled, refusing to set RDT class of container "
                                         "\"main\" to \"gold\"")});
  StartHost();
  Connect({}, [](FakePlugin& plugin) {
    plugin.create = [](const api::CreateContainerRequest&) {
      api::CreateContainerResponse response;
      api::LinuxContainerAdjustment& linux = *response.mutable_adjust()->mutable_linux();
      linux.mutable_rdt()->mutable_clos_id()->set_value("gold");
      return response;
    };
  });
  HostedPod pod{Client()};
  EXPECT_FALSE(pod.Create("main").ok());
  runtime_.ForgetCalls();
  ASSERT_THAT(pod.Create("main"), IsOk());
  EXPECT_FALSE(Created().annotations().contains("io.kubernetes.cri.rdt-class"));
}

// Creations for which a plugin wants a class of RDT, which this node has.
class RdtClassesTest : public NriHostTest {
 protected:
  void SetUp() override {
    StartHost({.find_files = [](const HostFiles&, const std::string&) -> StatusOr<FoundFiles> {
      return FoundFiles{.rdt = true};
    }});
    plugin_ = &Connect();
    pod_ = std::make_unique<HostedPod>(HostedPod{Client()});
  }
  // The plugin wants this class; "": none.
  void Want(const std::string& rdt_class) {
    OnLoop([&] {
      plugin_->create = [rdt_class](const api::CreateContainerRequest&) {
        api::CreateContainerResponse response;
        if (rdt_class.empty()) return response;
        api::LinuxContainerAdjustment& linux = *response.mutable_adjust()->mutable_linux();
        linux.mutable_rdt()->mutable_clos_id()->set_value(rdt_class);
        return response;
      };
    });
  }
  // The runtime refuses the container "main" so.
  void RefuseBy(const std::string& message, const std::string& command = "/run") {
    runtime_.Script("CreateContainer",
                    {.times = 1, .error = grpc::Status(grpc::StatusCode::UNKNOWN, message)});
    cri::ContainerConfig config = MakeGuaranteedContainer("main", 1);
    config.add_command(command);
    EXPECT_FALSE(pod_->client.CreateContainer(pod_->id, MakeGuaranteedPod("g"), config).ok());
  }
  // The class that the next container gets.
  std::string Next() {
    Want("gold");
    const auto id = pod_->Create(fmt::format("next{}", ++containers_));
    EXPECT_THAT(id, IsOk());
    cri::ContainerStatusRequest request;
    request.set_container_id(id.value_or(""));
    cri::ContainerStatusResponse response;
    EXPECT_TRUE(pod_->client.Unary("ContainerStatus", request, &response).ok());
    EXPECT_THAT(pod_->client.RemoveContainer(id.value_or("")), IsOk());
    const auto& annotations = response.status().annotations();
    const auto found = annotations.find("io.kubernetes.cri.rdt-class");
    return found == annotations.end() ? "" : found->second;
  }

  const std::string no_rdt_ =
      "RDT disabled, refusing to set RDT class of container \"main\" to \"gold\"";

 private:
  FakePlugin* plugin_ = nullptr;
  std::unique_ptr<HostedPod> pod_;
  int containers_ = 0;
};

// Runtimes quote pods' texts in errors.
TEST_F(RdtClassesTest, WhatPodsSayOfRdtEndsNoClasses) {
  EXPECT_EQ(Next(), "gold");
  Want("");
  RefuseBy(no_rdt_);
  EXPECT_EQ(Next(), "gold") << "none was sent";
  RefuseBy("exec: \"RDT disabled\": executable file not found in $PATH", "RDT disabled");
  EXPECT_EQ(Next(), "gold");
  RefuseBy("exec: \"" + no_rdt_ + "\": executable file not found in $PATH", no_rdt_);
  EXPECT_EQ(Next(), "gold");
  RefuseBy("no such file: " + no_rdt_, no_rdt_);
  EXPECT_EQ(Next(), "gold");
  const std::string quoted = "x\" spec: failed to set RDT class: " + no_rdt_;
  RefuseBy("failed to generate container \"c\" spec: no profile \"" + quoted, quoted);
  EXPECT_EQ(Next(), "gold");
  RefuseBy("RDT disabled, refusing to set RDT class of container \"other\" to \"gold\"");
  EXPECT_EQ(Next(), "gold");
}

TEST_F(RdtClassesTest, ARuntimeWithoutRdtGetsNoMoreClasses) {
  EXPECT_EQ(Next(), "gold");
  RefuseBy("failed to generate container \"c\" spec: failed to set RDT class: " + no_rdt_);
  EXPECT_EQ(Next(), "");
}

TEST_F(RdtClassesTest, ARuntimeThatComesBackIsAskedForClassesAgain) {
  EXPECT_EQ(Next(), "gold");
  RefuseBy("failed to generate container \"c\" spec: failed to set RDT class: " + no_rdt_);
  EXPECT_EQ(Next(), "");
  runtime_.CutConnections();
  EXPECT_TRUE(Eventually([this] { return Next() == "gold"; }));
}

// The runtime is replaced by another version while the daemon runs, with a policy and without one.
class RuntimeUpgradeTest : public NriHostTest, public testing::WithParamInterface<bool> {
 protected:
  RuntimeUpgradeTest() { has_policy_ = GetParam(); }

  void SetVersion(const std::string& version) {
    cri::VersionResponse reply;
    reply.set_version("0.1.0");
    reply.set_runtime_api_version("v1");
    reply.set_runtime_name("containerd");
    reply.set_runtime_version(version);
    runtime_.Script("Version", {.reply = std::vector{reply.SerializeAsString()}});
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, RuntimeUpgradeTest, testing::Bool(), [](const auto& policy) {
  return policy.param ? "WithPolicy" : "WithoutPolicy";
});

TEST_P(RuntimeUpgradeTest, PluginsAndContainersGetTheFactsOfTheNewVersion) {
  SetVersion("1.6.20");
  StartHost();
  FakePlugin& plugin = Connect({}, [](FakePlugin& connected) {
    connected.create = [](const api::CreateContainerRequest&) {
      api::CreateContainerResponse response;
      response.mutable_adjust()->add_cdi_devices()->set_name("vendor/a=0");
      return response;
    };
  });
  EXPECT_EQ(plugin.configured->runtime_version(), "1.6.20");
  const auto create = [this](int number) {
    CriClient client = Client();
    const std::string name = fmt::format("pod{}", number);
    const auto pod = client.RunPod(MakeBestEffortPod(name));
    if (!pod.ok()) return pod;
    return client.CreateContainer(*pod, MakeBestEffortPod(name), MakeBestEffortContainer("main"));
  };
  EXPECT_THAT(create(0), Fails(StatusCode::kFailedPrecondition,
                               testing::HasSubstr("the runtime does not have them")));
  SetVersion("2.0.0");
  runtime_.CutConnections();
  int number = 0;
  EXPECT_TRUE(Eventually([&] { return create(++number).ok(); }));
  EXPECT_EQ(Connect({.index = "20"}).configured->runtime_version(), "2.0.0");
}

// Four plugins that take 250 ms each have one second together, for both phases of a creation.
TEST_F(NriHostTest, TheTimeOfAllPluginsIsOneForAllPhasesOfACall) {
  StartHost({.budget = std::chrono::milliseconds(1'000)});
  std::vector<FakePlugin*> plugins;
  plugins.reserve(4);
  for (int i = 0; i < 4; ++i)
    plugins.push_back(&Connect({.index = fmt::format("1{}", i)}));
  HostedPod pod{Client()};
  std::vector<EventLoop::HandlePtr> slow;
  OnLoop([&] {
    for (FakePlugin* plugin : plugins) {
      plugin->Hang();
      slow.push_back(loop().Every(std::chrono::milliseconds(250), [plugin] {
        plugin->Release();
        plugin->Hang();
      }));
    }
  });
  // A second for each phase would delay each creation, a busy machine delays some.
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5 && quickest >= std::chrono::milliseconds(1'400); ++i) {
    const std::string name = fmt::format("main{}", i);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(pod.Create(name), IsOk());
    quickest = std::min(quickest, std::chrono::steady_clock::now() - begin);
    // All plugins get the event.
    for (FakePlugin* plugin : plugins)
      Until([&] { return plugin->told.back() == "PostCreateContainer g/" + name; });
  }
  EXPECT_LT(quickest, std::chrono::milliseconds(1'400));
  OnLoop([&] { slow.clear(); });
}

TEST_F(NriHostTest, NoContainerIsCreatedWhileARequiredPluginIsAway) {
  StartHost({.required = {"10-needed"}});
  HostedPod pod{Client()};
  EXPECT_THAT(pod.Create("main"), Fails(StatusCode::kUnavailable,
                                        "the required NRI plugin 10-needed is not connected"));
  Connect({.name = "needed"});
  EXPECT_THAT(pod.Create("main"), IsOk());
}

// The runtime has neither created the container nor answered: plugins learn that it does not exist.
TEST_F(NriHostTest, OfACreationThatIsLostPluginsHearWhatBecameOfIt) {
  StartHost();
  FakePlugin& plugin = Connect();
  HostedPod pod{Client()};
  runtime_.Script("CreateContainer", {.times = 1, .cut = true});
  EXPECT_FALSE(pod.Create("main").ok());
  Until([&] { return plugin.told.back() == "RemoveContainer g/main"; });
  EXPECT_THAT(Told(plugin),
              ElementsAre("Configure", "Synchronize", "RunPodSandbox g", "CreateContainer g/main",
                          "StopContainer g/main", "RemoveContainer g/main"));
  EXPECT_THAT(pod.Create("main"), IsOk());
}

// A client's deadline and a runtime that ends are answered like this while the container starts.
TEST_F(NriHostTest, AStartThatMayHaveTakenEffectIsNoStop) {
  StartHost();
  FakePlugin& plugin = Connect();
  HostedPod pod{Client()};
  for (const auto code : {grpc::StatusCode::CANCELLED, grpc::StatusCode::DEADLINE_EXCEEDED,
                          grpc::StatusCode::UNAVAILABLE}) {
    const std::string id = Ok(pod.Create(fmt::format("main{}", static_cast<int>(code))));
    runtime_.Script("StartContainer", {.times = 1, .late_error = grpc::Status(code, "late")});
    EXPECT_FALSE(pod.client.StartContainer(id).ok());
    // Plugins get the next creation after all events of this start.
    ASSERT_THAT(pod.Create(fmt::format("next{}", static_cast<int>(code))), IsOk());
    EXPECT_THAT(Told(plugin), testing::Not(testing::Contains(testing::HasSubstr("StopContainer"))))
        << code;
  }
}

TEST_F(NriHostTest, AStartThatTheRuntimeRefusesIsAStop) {
  StartHost();
  FakePlugin& plugin = Connect();
  HostedPod pod{Client()};
  const std::string id = Ok(pod.Create("main"));
  runtime_.Script("StartContainer",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::INTERNAL, "no")});
  EXPECT_FALSE(pod.client.StartContainer(id).ok());
  Until([&] { return plugin.told.back() == "StopContainer g/main"; });
}

// A sandbox that the runtime has made all the same is shown to a plugin that comes later.
TEST_F(NriHostTest, WhatCameOfAnUnclearSandboxIsLearned) {
  StartHost();
  CriClient client = Client();
  ASSERT_THAT(client.RunPod(MakeGuaranteedPod("first")), IsOk());
  runtime_.Script("RunPodSandbox",
                  {.times = 1, .late_error = grpc::Status(grpc::StatusCode::UNAVAILABLE, "late")});
  EXPECT_FALSE(client.RunPod(MakeGuaranteedPod("g")).ok());
  const auto shown = [this](const std::string& name) {
    const FakePlugin& late = Connect({.name = name});
    int pods = 0;
    OnLoop([&] { pods = late.inventory.pods_size(); });
    return pods;
  };
  int number = 0;
  EXPECT_TRUE(Eventually([&] { return shown(fmt::format("late{}", ++number)) == 2; }));
}

TEST_F(NriHostTest, AStartMayBeAskedForBeforeTheRuntime) {
  StartHost({.start_before = true});
  bool refuses = true;
  FakePlugin& plugin = Connect({}, [&refuses](FakePlugin& asked) {
    asked.event = [&refuses](const api::StateChangeEvent& event) {
      const bool start = event.event() == api::EVENT_START_CONTAINER;
      return start && refuses ? FailedPrecondition("not now") : OkStatus();
    };
  });
  HostedPod pod{Client()};
  const std::string id = Ok(pod.Create("main"));
  EXPECT_THAT(pod.client.StartContainer(id),
              Fails(StatusCode::kFailedPrecondition, "NRI plugin 10-fake: not now"));
  EXPECT_TRUE(runtime_.Calls("StartContainer").empty());
  EXPECT_TRUE(runtime_.Calls("StopContainer").empty()) << "it does not run";
  OnLoop([&] {
    refuses = false;
    plugin.told.clear();
  });
  EXPECT_THAT(pod.client.StartContainer(id), IsOk());
  Until([&] { return plugin.told.size() == 2; });
  EXPECT_THAT(Told(plugin), ElementsAre("StartContainer g/main", "PostStartContainer g/main"));
}

TEST_F(NriHostTest, APluginMayRefuseWhatAPodGets) {
  StartHost();
  bool refuses = true;
  int64_t quota = 0;
  FakePlugin& plugin = Connect({}, [&](FakePlugin& asked) {
    asked.update_pod = [&](const api::UpdatePodSandboxRequest& request)
        -> StatusOr<api::UpdatePodSandboxResponse> {
      quota = request.linux_resources().cpu().quota().value();
      if (refuses) return ResourceExhausted("too much");
      return api::UpdatePodSandboxResponse();
    };
  });
  HostedPod pod{Client()};
  cri::UpdatePodSandboxResourcesRequest request;
  request.set_pod_sandbox_id(pod.id);
  request.mutable_resources()->set_cpu_quota(30'000);
  OnLoop([&plugin] { plugin.told.clear(); });
  const auto update = [&] {
    return pod.client.Start("UpdatePodSandboxResources", request)->Wait(kPatience)->status;
  };
  EXPECT_EQ(update().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(runtime_.Calls("UpdatePodSandboxResources").empty());
  OnLoop([&refuses] { refuses = false; });
  EXPECT_TRUE(update().ok());
  Until([&] { return plugin.told.size() == 3; });
  EXPECT_THAT(Told(plugin),
              ElementsAre("UpdatePodSandbox g", "UpdatePodSandbox g", "PostUpdatePodSandbox g"));
  OnLoop([&quota] { EXPECT_EQ(quota, 30'000); });
  // A plugin that connects later is shown the pod's resources.
  FakePlugin& later = Connect({.name = "later"});
  OnLoop([&later] {
    ASSERT_EQ(later.inventory.pods_size(), 1);
    EXPECT_EQ(later.inventory.pods(0).linux().pod_resources().cpu().quota().value(), 30'000);
  });
}

TEST_F(NriHostTest, TheConfigurationChangesWhilePluginsAreConnected) {
  StartHost();
  const FakePlugin& plugin = Connect({}, [](FakePlugin& adds) {
    adds.create = [](const api::CreateContainerRequest&) {
      api::CreateContainerResponse response;
      response.mutable_adjust()->mutable_hooks()->add_prestart()->set_path("/bin/true");
      return response;
    };
  });
  HostedPod pod{Client()};
  EXPECT_THAT(
      pod.Create("main"),
      Fails(StatusCode::kFailedPrecondition,
            "plugin \"10-fake\" wants to set OciHooks /bin/true: the CRI has no field for it"));
  Config config;
  config.nri.plugin_path = "";
  config.nri.unsupported["OciHooks"] = FailurePolicy::kIgnore;
  Configure(config);
  EXPECT_THAT(pod.Create("main"), IsOk());
  config.nri.validator.reject_oci_hooks = true;
  Configure(config);
  EXPECT_THAT(pod.Create("second"),
              Fails(StatusCode::kFailedPrecondition,
                    "default validator: \"10-fake\" may not change OCI hooks"));
  config.nri.validator = {};
  config.nri.plugins["20-needed"].required = true;
  Configure(config);
  EXPECT_THAT(pod.Create("second"), Fails(StatusCode::kUnavailable,
                                          "the required NRI plugin 20-needed is not connected"));
  config.nri.plugins.clear();
  Configure(config);
  EXPECT_THAT(pod.Create("second"), IsOk());
  OnLoop([&plugin] { EXPECT_FALSE(plugin.lost.has_value()); });
}

TEST_F(NriHostTest, APluginSeesThePolicysCpusAndDoesNotChangeThem) {
  StartHost();
  std::string seen;
  Connect({}, [&seen](FakePlugin& pins) {
    pins.create = [&seen](const api::CreateContainerRequest& request) {
      seen = request.container().linux().resources().cpu().cpus();
      api::CreateContainerResponse response;
      response.mutable_adjust()->mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("3");
      return response;
    };
  });
  HostedPod pod{Client()};
  ASSERT_THAT(pod.Create("main"), IsOk());
  EXPECT_EQ(Created().linux().resources().cpuset_cpus(), "1");
  OnLoop([&seen] { EXPECT_EQ(seen, "1"); });
}

TEST_F(NriHostTest, CpusetFilesOfAPluginReachNoContainer) {
  StartHost();
  std::string first;
  FakePlugin& plugin = Connect({}, [&first](FakePlugin& pins) {
    pins.create = [&first](const api::CreateContainerRequest& request) {
      api::CreateContainerResponse response;
      const auto add = [](api::LinuxResources& resources) {
        (*resources.mutable_unified())["cpuset.cpus"] = "3";
        (*resources.mutable_unified())["cpuset.cpus.partition"] = "root";
        (*resources.mutable_unified())["cpu.max"] = "50000 100000";
      };
      add(*response.mutable_adjust()->mutable_linux()->mutable_resources());
      if (!first.empty()) {
        api::ContainerUpdate& other = *response.add_update();
        other.set_container_id(first);
        add(*other.mutable_linux()->mutable_resources());
      }
      first = request.container().id();
      return response;
    };
  });
  HostedPod pod{Client()};
  ASSERT_THAT(pod.Create("one"), IsOk());
  runtime_.ForgetCalls();
  ASSERT_THAT(pod.Create("two"), IsOk());
  const cri::LinuxContainerResources made = Created().linux().resources();
  EXPECT_EQ(made.unified_size(), 0) << made.DebugString();
  EXPECT_EQ(made.cpu_quota(), 50'000);
  EXPECT_EQ(made.cpu_period(), 100'000);
  // The other container is updated beside the creation.
  EXPECT_TRUE(Eventually([this] {
    bool updated = false;
    for (const RecordedCall& call : runtime_.Calls("UpdateContainerResources")) {
      cri::UpdateContainerResourcesRequest request;
      EXPECT_TRUE(!call.messages.empty() && request.ParseFromString(call.messages.at(0)));
      EXPECT_EQ(request.linux().unified_size(), 0) << request.DebugString();
      updated |= request.linux().cpu_quota() == 50'000;
    }
    return updated;
  }));
  OnLoop([&] { EXPECT_FALSE(plugin.lost.has_value()); });
}

TEST_F(NriHostTest, APluginAsksForAChangeFromWithinItsAnswer) {
  StartHost();
  std::string first;
  FakePlugin& plugin = Connect({}, [&first](FakePlugin& asks) {
    asks.create = [&first, &asks](const api::CreateContainerRequest& request) {
      if (!first.empty()) {
        api::ContainerUpdate update;
        update.set_container_id(first);
        auto& resources = *update.mutable_linux()->mutable_resources();
        resources.mutable_memory()->mutable_limit()->set_value(1 << 30);
        asks.UpdateContainers({update});
      }
      first = request.container().id();
      return api::CreateContainerResponse();
    };
  });
  HostedPod pod{Client()};
  ASSERT_THAT(pod.Create("one"), IsOk());
  ASSERT_THAT(pod.Create("two"), IsOk());
  Until([&] { return plugin.update_answers.size() == 1; });
  OnLoop([&] {
    ASSERT_THAT(plugin.update_answers[0], IsOk());
    EXPECT_EQ(plugin.update_answers[0]->failed_size(), 0);
  });
  bool changed = false;
  for (const RecordedCall& call : runtime_.Calls("UpdateContainerResources")) {
    cri::UpdateContainerResourcesRequest request;
    ASSERT_TRUE(request.ParseFromString(call.messages.at(0)));
    changed |= request.linux().memory_limit_in_bytes() == 1 << 30;
  }
  EXPECT_TRUE(changed);
}

// The container's block I/O class stays: the rest is sent, and plugins are shown only the changes.
TEST_F(NriHostTest, WhatAnUpdateCannotCarryIsLeftOut) {
  StartHost();
  std::vector<std::string> seen;
  Connect({}, [&seen](FakePlugin& plugin) {
    plugin.update = [&seen](const api::UpdateContainerRequest& request) {
      seen.push_back(request.container().linux().resources().blockio_class().value());
      api::UpdateContainerResponse response;
      api::ContainerUpdate& update = *response.add_update();
      update.set_container_id(request.container().id());
      auto& resources = *update.mutable_linux()->mutable_resources();
      resources.mutable_blockio_class()->set_value("gold");
      resources.mutable_memory()->mutable_limit()->set_value(1 << 30);
      return response;
    };
  });
  HostedPod pod{Client()};
  const std::string container = Ok(pod.Create("one"));
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(container);
  request.mutable_linux()->set_cpu_shares(1024);
  for (int i = 0; i < 2; ++i) {
    runtime_.ForgetCalls();
    EXPECT_TRUE(
        pod.client.Start("UpdateContainerResources", request)->Wait(kPatience)->status.ok());
    cri::UpdateContainerResourcesRequest received;
    ASSERT_TRUE(received.ParseFromString(Received("UpdateContainerResources")));
    EXPECT_EQ(received.linux().memory_limit_in_bytes(), 1 << 30);
    EXPECT_TRUE(received.annotations().empty());
  }
  OnLoop([&seen] { EXPECT_THAT(seen, ElementsAre("", "")); });
}

}  // namespace
}  // namespace resmgr::test
