// SPDX-License-Identifier: Apache-2.0
// Files that tell containers their CPUs: the requested mounts, and the content of the mounted
// directory through changes, restarts and kills.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

class CpuFilesTest : public ControlTest {
 protected:
  static constexpr char kMountPath[] = "/run/cri-resmgr";

  // CPU 0 is reserved.
  std::vector<std::string> DaemonFlags(const std::string& containers = "all") const {
    const std::string file =
        WriteFile("node.yaml",
                  "policy: {Active: static, ReservedResources: {CPU: cpuset:0}}\n"
                  "cpuFiles: {Containers: " +
                      containers + "}\n");
    return Flags({"-config", file});
  }
  void StartWith(const std::string& containers = "all") {
    StartRuntime();
    StartDaemon(DaemonFlags(containers));
  }

  fs::path FilesDirectory() const { return RelaySocket() + ".cpus"; }
  std::vector<std::string> Directories() const {
    std::vector<std::string> names;
    if (!fs::exists(FilesDirectory())) return names;
    for (const auto& entry : fs::directory_iterator(FilesDirectory()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  bool EventuallyDirectories(size_t count) {
    return Eventually([&] { return Directories().size() == count; });
  }
  // The directory that the runtime mounts into the container; "" where there is none.
  std::string Mounted(const std::string& container) {
    const auto found = runtime_.FindContainer(container);
    if (!found) return "no container";
    std::string host_path;
    for (const cri::Mount& mount : found->config.mounts()) {
      if (mount.container_path() != kMountPath) continue;
      EXPECT_TRUE(mount.readonly());
      EXPECT_EQ(host_path, "") << "mounted twice";
      host_path = mount.host_path();
    }
    return host_path;
  }
  // The text that the container reads in it.
  std::string Read(const std::string& container) {
    return ReadFile(Mounted(container) + "/cpus.env", 1000).value_or("no file");
  }
  static std::string Text(std::string_view cpus, std::string_view exclusive,
                          std::string_view shared) {
    return fmt::format("CPUS={}\nEXCLUSIVE_CPUS={}\nSHARED_CPUS={}\nMEMORY_NODES=0\n", cpus,
                       exclusive, shared);
  }
  bool EventuallyReads(const std::string& container, const std::string& text) {
    return Eventually([&] { return Read(container) == text; });
  }

  Running RunShared(CriClient& client, const std::string& name) {
    return Run(client, MakeBurstablePod(name), MakeBurstableContainer("main", MilliCpu{100}));
  }
  Running RunExclusive(CriClient& client, const std::string& name, int cpus) {
    return Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", cpus));
  }
  static void Remove(CriClient& client, const Running& running) {
    cri::RemoveContainerRequest request;
    request.set_container_id(running.container);
    cri::RemoveContainerResponse response;
    ASSERT_TRUE(client.Unary("RemoveContainer", request, &response).ok());
  }
};

TEST_F(CpuFilesTest, AContainerReadsItsCpusAndEachChange) {
  StartWith();
  CriClient client = Relayed();
  const Running shared = RunShared(client, "web");
  EXPECT_EQ(Read(shared.container), Text("0-7", "", "0-7")) << "when it begins to run";
  const Running exclusive = RunExclusive(client, "dsp", 2);
  EXPECT_EQ(Read(exclusive.container), Text("1-2", "1-2", ""));
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0,3-7", "", "0,3-7")));
  EXPECT_THAT(Directories(), SizeIs(2));
  Remove(client, exclusive);
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0-7", "", "0-7")));
  EXPECT_TRUE(EventuallyDirectories(1));
  cri::RemovePodSandboxRequest pod;
  pod.set_pod_sandbox_id(shared.pod);
  cri::RemovePodSandboxResponse response;
  ASSERT_TRUE(client.Unary("RemovePodSandbox", pod, &response).ok());
  EXPECT_TRUE(EventuallyDirectories(0));
}

TEST_F(CpuFilesTest, TheFileWaitsForTheRuntime) {
  StartWith();
  CriClient client = Relayed();
  const Running shared = RunShared(client, "web");
  runtime_.Script("UpdateContainerResources", {.hold = true});
  std::future<Running> exclusive =
      std::async(std::launch::async, [this, &client] { return RunExclusive(client, "dsp", 2); });
  ASSERT_TRUE(runtime_.WaitForHeld("UpdateContainerResources", 1));
  EXPECT_EQ(Read(shared.container), Text("0-7", "", "0-7")) << "it may run there still";
  runtime_.Release("UpdateContainerResources");
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0,3-7", "", "0,3-7")));
  exclusive.get();
}

TEST_F(CpuFilesTest, OnlyContainersThatAskForIt) {
  StartWith("annotated");
  CriClient client = Relayed();
  const Running unsaid = RunShared(client, "unsaid");
  EXPECT_EQ(Mounted(unsaid.container), "");
  cri::PodSandboxConfig pod = MakeBurstablePod("asks");
  (*pod.mutable_annotations())["cpu-file.cri-resource-manager.intel.com/container.main"] = "true";
  const Running asks = Run(client, pod, MakeBurstableContainer("main", MilliCpu{100}));
  EXPECT_EQ(Read(asks.container), Text("0-7", "", "0-7"));
  EXPECT_THAT(Ctl({"explain", asks.container}).out, HasSubstr("cpu-files"));
  EXPECT_THAT(Directories(), SizeIs(1));
}

TEST_F(CpuFilesTest, AFailedCreationLeavesNothing) {
  StartWith();
  CriClient client = Relayed();
  const Running shared = RunShared(client, "web");
  runtime_.Script("CreateContainer",
                  {.times = 1, .error = grpc::Status(grpc::StatusCode::INTERNAL, "no")});
  const cri::PodSandboxConfig pod = MakeGuaranteedPod("dsp");
  cri::RunPodSandboxRequest sandbox;
  *sandbox.mutable_config() = pod;
  cri::RunPodSandboxResponse made;
  ASSERT_TRUE(client.Unary("RunPodSandbox", sandbox, &made).ok());
  cri::CreateContainerResponse response;
  EXPECT_FALSE(
      client
          .Unary("CreateContainer",
                 CreateRequest(made.pod_sandbox_id(), pod, MakeGuaranteedContainer("main", 2)),
                 &response)
          .ok());
  EXPECT_TRUE(EventuallyDirectories(1));
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0-7", "", "0-7")));
}

TEST_F(CpuFilesTest, RestartsAndKillsGoOnWithTheSameFiles) {
  StartWith();
  Running shared;
  Running gone;
  {
    CriClient client = Relayed();
    shared = RunShared(client, "web");
    gone = RunExclusive(client, "gone", 1);
    EXPECT_TRUE(EventuallyReads(shared.container, Text("0,2-7", "", "0,2-7")));
  }
  const std::string directory = Mounted(shared.container);
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  EXPECT_EQ(Read(shared.container), Text("0,2-7", "", "0,2-7")) << "as long as no daemon runs";
  // Removed unseen; and a directory that no container has.
  {
    CriClient direct = Direct();
    Remove(direct, gone);
  }
  fs::create_directory(FilesDirectory() / "left_over_0");
  StartDaemon(DaemonFlags("none"));
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0-7", "", "0-7")));
  EXPECT_TRUE(EventuallyDirectories(1));

  daemon_->Kill();
  std::ofstream(directory + "/.cpus.env.tmp") << "half a te";
  StartDaemon(DaemonFlags());
  CriClient client = Relayed();
  const Running exclusive = RunExclusive(client, "dsp", 2);
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0,3-7", "", "0,3-7")));
  EXPECT_EQ(Read(exclusive.container), Text("1-2", "1-2", ""));
  EXPECT_EQ(Mounted(shared.container), directory);
  EXPECT_TRUE(EventuallyDirectories(2));
}

TEST_F(CpuFilesTest, TheNextDaemonTakesTheFilesOver) {
  StartWith();
  std::vector<std::string> flags = DaemonFlags();
  flags.emplace_back("-take-over");
  CriClient client = Relayed();
  const Running shared = RunShared(client, "web");
  const auto former = std::move(daemon_);
  StartDaemon(flags);
  CriClient again = Relayed();
  const Running exclusive = RunExclusive(again, "dsp", 2);
  EXPECT_EQ(Read(exclusive.container), Text("1-2", "1-2", ""));
  EXPECT_TRUE(EventuallyReads(shared.container, Text("0,3-7", "", "0,3-7")));
}

TEST_F(CpuFilesTest, AConfigurationThatIsDeliveredCountsForNewContainers) {
  StartWith("none");
  CriClient client = Relayed();
  const std::string policy = "Active: static\nReservedResources: {CPU: cpuset:0}\n";
  const Running before = RunShared(client, "before");
  ASSERT_EQ(SetConfig({{"policy", policy}, {"cpuFiles", "Containers: all"}}), "");
  const Running with = RunShared(client, "with");
  ASSERT_EQ(SetConfig({{"policy", policy}}), "");
  const Running after = RunShared(client, "after");
  EXPECT_EQ(Mounted(before.container), "");
  EXPECT_EQ(Mounted(after.container), "");
  RunExclusive(client, "dsp", 2);
  EXPECT_TRUE(EventuallyReads(with.container, Text("0,3-7", "", "0,3-7")));
  EXPECT_THAT(SetConfig({{"policy", policy}, {"cpuFiles", "MountPath: here"}}),
              HasSubstr("cpuFiles.MountPath"));
}

TEST_F(CpuFilesTest, AChangeToNullLetsTheFileGoToo) {
  StartWith();
  CriClient client = Relayed();
  const Running exclusive = RunExclusive(client, "dsp", 2);
  ASSERT_EQ(SetConfig({{"policy", "Active: null"}, {"cpuFiles", "Containers: all"}}), "");
  EXPECT_TRUE(EventuallyReads(exclusive.container, Text("0-7", "", "0-7")));
  EXPECT_EQ(Mounted(RunShared(client, "later").container), "");
}

TEST_F(CpuFilesTest, WithoutAFileTheContainerIsCreatedAndCounted) {
  fs::create_directory(FilesDirectory());
  fs::permissions(FilesDirectory(), fs::perms::all);
  StartWith();
  CriClient client = Relayed();
  const Running running = RunExclusive(client, "dsp", 2);
  EXPECT_EQ(Mounted(running.container), "");
  EXPECT_EQ(CpusAtRuntime(running.container), (CpuSet{1, 2}));
  EXPECT_TRUE(Logged("a call continues without stage cpu-files"));
  EXPECT_TRUE(Logged("other users may write there"));
}

}  // namespace
}  // namespace resmgr::test
