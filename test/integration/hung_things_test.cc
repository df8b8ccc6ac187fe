// SPDX-License-Identifier: Apache-2.0
// A hanging pod's volume, reader of the log or disk delays only its users.
#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/hung_things_fixture.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

constexpr char kSetConfig[] = "/v1.Config/SetConfig";

// A file system whose server never answers: FUSE with a device that is never read. Seen by this
// thread and the processes that it starts. Closing the device lets all calls that wait for it fail.
class DeadFileSystem {
 public:
  // False where the kernel or our rights do not allow it.
  bool MountOn(const std::string& directory) {
    device_.Reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    if (!device_.valid() || ::unshare(CLONE_NEWNS) != 0) return false;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    const std::string options =
        fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", device_.get());
    return ::mount("dead", directory.c_str(), "fuse", 0, options.c_str()) == 0;
  }

 private:
  UniqueFd device_;
};

class DeadVolumeTest : public HungThingsTest {
 protected:
  void StartTopologyAware() {
    StartRuntime();
    StartDaemon(Flags({"-policy", "topology-aware", "-reserved-resources", "CPU=1"}));
    ASSERT_TRUE(Logged("the runtime holds"));
    pod_ = Relayed().RunPod(MakeGuaranteedPod("g")).value_or("");
    ASSERT_NE(pod_, "");
  }
  cri::CreateContainerRequest Request(const cri::ContainerConfig& container) {
    return CreateRequest(pod_, MakeGuaranteedPod("g"), container);
  }

  DeadFileSystem dead_;
  std::string pod_;
};

TEST_F(DeadVolumeTest, ContainerWithAVolumeOnItIsCreatedWithoutDelay) {
  const std::string volume = Path("volume");
  std::filesystem::create_directory(volume);
  if (!dead_.MountOn(volume)) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartTopologyAware();
  cri::ContainerConfig container = MakeGuaranteedContainer("main", 2);
  cri::Mount& mount = *container.add_mounts();
  mount.set_host_path(volume + "/data");
  mount.set_container_path("/data");
  CriClient client = Relayed();
  const auto created = client.Start("CreateContainer", Request(container));
  EXPECT_LE(VersionMeanwhile(), kMeanwhile);
  const auto result = created->Wait(kPatience);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok()) << result->status.error_message();
}

// Reading a device node asks the file system that holds it. The number of hanging threads is
// limited, and when all of them hang no creation waits any more.
TEST_F(DeadVolumeTest, ContainersWithADeviceOnItAreCreatedWithoutHints) {
  if (!dead_.MountOn("/dev/shm")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartTopologyAware();
  CriClient client = Relayed();
  for (int i = 0; i < 6; ++i) {
    cri::ContainerConfig container = MakeGuaranteedContainer("main-" + std::to_string(i), 1);
    cri::Device& device = *container.add_devices();
    device.set_host_path("/dev/shm/device");
    device.set_container_path("/dev/device");
    const auto created = client.Start("CreateContainer", Request(container));
    EXPECT_LE(VersionMeanwhile(), kMeanwhile);
    const auto result = created->Wait(kPatience);
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->status.ok()) << result->status.error_message();
  }
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid()) + "/task");
  const auto looking = std::count_if(begin(tasks), end(tasks), [](const auto& task) {
    return TextOf(task.path() / "comm") == "hints\n";
  });
  EXPECT_EQ(looking, 4);
}

// A daemon whose log is a pipe with little room that is never read.
class UnreadLogTest : public HungThingsTest {
 protected:
  void StartUnread(const std::vector<std::string>& flags) {
    StartRuntime();
    ASSERT_EQ(::mkfifo(Path("log").c_str(), 0600), 0);
    reader_.Reset(::open(Path("log").c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    ASSERT_GE(::fcntl(reader_.get(), F_SETPIPE_SZ, 4096), 4096);
    std::vector<std::string> argv = StaticFlags(flags);
    argv.insert(argv.begin(), Program("cri-resmgr"));
    auto process = ChildProcess::Start(argv, Path("log"));
    ASSERT_THAT(process, IsOk());
    process_ = *std::move(process);
    ASSERT_TRUE(Eventually([this] { return ConnectUnix(Path("config.sock")).ok(); }));
  }
  // Each call makes libprotobuf log invalid UTF-8.
  void SendWhatMakesLinesOfLog(int calls) {
    CriClient config(Path("config.sock"));
    for (int i = 0; i < calls; ++i) {
      const auto call = config.Start(kSetConfig, "\n\x02\xc3\x28");
      if (!call->Wait(kPatience).has_value()) return;
    }
  }
  std::string ReadLog() const {
    std::string all;
    std::vector<char> buffer(65536);
    for (ssize_t got = 0; (got = ::read(reader_.get(), buffer.data(), buffer.size())) > 0;)
      all.append(buffer.data(), static_cast<size_t>(got));
    return all;
  }

  UniqueFd reader_;
  std::unique_ptr<ChildProcess> process_;
};

TEST_F(UnreadLogTest, AnUnreadLogDelaysNoCall) {
  StartUnread({"-logger-debug", "*"});
  SendWhatMakesLinesOfLog(200);
  EXPECT_LE(VersionMeanwhile(), kMeanwhile);
  process_->Signal(SIGTERM);
  const auto code = process_->Wait(kPatience);
  ASSERT_THAT(code, IsOk());
  EXPECT_EQ(*code, 0);
}

TEST_F(UnreadLogTest, SaysHowMuchIsMissingWhenItIsReadAgain) {
  StartUnread({"-dump", "reset,full:.*", "-logger-debug", "*"});
  CriClient client = Relayed();
  // More than a megabyte of lines.
  for (int i = 0; i < 6000; ++i)
    ASSERT_TRUE(client.Call(kVersion, {std::string("\n\x05v1.30")}).status.ok());
  std::string all;
  EXPECT_TRUE(Eventually([&] {
    all += ReadLog();
    return all.find("log messages were dropped: they were not read") != std::string::npos;
  })) << all.size();
}

TEST_F(UnreadLogTest, SurvivesTheEndOfItsReader) {
  StartUnread({});
  reader_.Reset();
  SendWhatMakesLinesOfLog(20);
  EXPECT_LE(VersionMeanwhile(), kMeanwhile);
  EXPECT_TRUE(process_->Running());
}

TEST_F(HungThingsTest, WhatProtobufSaysIsALineOfOurLog) {
  StartBoth();
  CriClient config(Path("config.sock"));
  for (int i = 0; i < 50; ++i)
    config.Call(kSetConfig, {"\n\x02\xc3\x28"});
  ASSERT_TRUE(Logged("invalid UTF-8"));
  const std::string log = daemon_->Log();
  EXPECT_EQ(log.find("libprotobuf"), std::string::npos) << log;
  EXPECT_THAT(log, HasSubstr("warning [protobuf] "));
  int lines = 0;
  for (size_t at = 0; (at = log.find("invalid UTF-8", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_LE(lines, 10);
}

}  // namespace
}  // namespace resmgr::test
