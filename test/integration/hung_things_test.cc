// SPDX-License-Identifier: Apache-2.0
// A hanging pod's volume, reader of the log or disk delays only its users.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/api/config.pb.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/hanging_disk/hanging_disk.h"
#include "test/support/programs/programs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

// The limit of the median time of another client's call while something hangs: a call that waited
// for that would take far longer than a busy machine makes it.
constexpr milliseconds kMeanwhile{1'000};

// A daemon beside something that hangs.
class HungThingsTest : public DaemonTest {
 protected:
  // The median of some calls of another client: a busy machine delays single ones.
  milliseconds VersionMeanwhile() {
    using Clock = std::chrono::steady_clock;
    constexpr int kCalls = 11;
    CriClient other = Relayed();
    std::vector<milliseconds> times;
    for (int i = 0; i < kCalls; ++i) {
      const auto start = Clock::now();
      const auto call = other.Start(kVersion, "");
      const auto result = call->Wait(kPatience);
      if (!result.has_value()) return kPatience;
      EXPECT_TRUE(result->status.ok()) << result->status.error_message();
      times.push_back(std::chrono::duration_cast<milliseconds>(Clock::now() - start));
    }
    std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
    return times[kCalls / 2];
  }
  // The exit status and the output of a command of cri-resmgr-ctl.
  std::pair<int, std::string> OutputOf(const std::string& command) {
    std::filesystem::remove(Path("output"));
    const auto process = ChildProcess::Start(
        {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), command}, Path("output"));
    if (!process.ok()) return {-1, process.status().ToString()};
    const int exit_code = (*process)->Wait(kPatience).value_or(-1);
    std::ifstream output(Path("output"));
    return {exit_code, std::string(std::istreambuf_iterator<char>(output), {})};
  }
};

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
  const auto code = Must(process_->Wait(kPatience));
  EXPECT_EQ(code, 0);
}

TEST_F(UnreadLogTest, SaysHowMuchIsMissingWhenItIsReadAgain) {
  StartUnread({"-dump", "reset,full:.*", "-dump-file", Path("calls"), "-logger-debug", "*"});
  CriClient client = Relayed();
  // More than a megabyte of lines.
  const std::string version(2000, '1');
  for (int i = 0; i < 600; ++i)
    ASSERT_TRUE(client.Call(kVersion, {"\n\xd0\x0f" + version}).status.ok());
  // The log is read once the dumper's thread has written those lines into it: a slow one would
  // never find the log full.
  ASSERT_TRUE(Eventually([&] {
    client.Call(kVersion, {"\n\x04last"});
    return TextOf(Path("calls")).find("last") != std::string::npos;
  }));
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

// A disk that stops answering (state, dump) delays no call and no end of the daemon.

// The state's file on the disk that is mounted on -relay-dir.
const std::string kStateFile = "state/state";

class HungDisksTest : public HungThingsTest {
 protected:
  // Turns LeakSanitizer off for daemons that this test starts: it stops all threads at the end of a
  // process, and a thread that waits for the disk cannot be stopped.
  HungDisksTest() {
    const std::string options = sanitizer_options_ ? *sanitizer_options_ + ":" : "";
    ::setenv(kSanitizerOptions, (options + "detect_leaks=0").c_str(), 1);
  }
  ~HungDisksTest() override {
    if (sanitizer_options_) {
      ::setenv(kSanitizerOptions, sanitizer_options_->c_str(), 1);
    } else {
      ::unsetenv(kSanitizerOptions);
    }
  }

  bool Mount(const std::string& name) {
    std::filesystem::create_directory(Path(name));
    return disk_.MountOn(Path(name));
  }
  bool Stored(const std::string& file, const std::string& text) {
    return Eventually([&] {
      const auto content = disk_.Content(file);
      return content && content->find(text) != std::string::npos;
    });
  }
  // A pod and a container in it, created and started as if nothing were wrong.
  Running RunMeanwhile(const std::string& name) {
    CriClient client = Relayed();
    return Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", 1));
  }
  void ExpectCallsGoOn(const std::string& name) {
    EXPECT_LE(VersionMeanwhile(), kMeanwhile);
    const Running running = RunMeanwhile(name);
    EXPECT_EQ(CpusAtRuntime(running.container).size(), 1);
    EXPECT_LE(VersionMeanwhile(), kMeanwhile);
  }
  void ExpectEndInTime() {
    daemon_->process().Signal(SIGTERM);
    const auto code = daemon_->process().Wait(kPatience);
    ASSERT_THAT(code, IsOk());
    EXPECT_EQ(*code, 0);
    EXPECT_TRUE(Logged("ended"));
  }

  static constexpr char kSanitizerOptions[] = "ASAN_OPTIONS";

  const std::optional<std::string> sanitizer_options_ = [] {
    const char* const options = std::getenv(kSanitizerOptions);
    return options == nullptr ? std::nullopt : std::optional<std::string>(options);
  }();
  HangingDisk disk_;
};

TEST_F(HungDisksTest, StateDiskThatHangsInAWrite) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartBoth();
  const Running before = RunMeanwhile("before");
  ASSERT_TRUE(Stored(kStateFile, before.container));
  disk_.Hang();
  const Running during = RunMeanwhile("during");
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectCallsGoOn("later");
  ExpectEndInTime();
  EXPECT_TRUE(Logged("the state is not saved: its disk does not answer"));
}

TEST_F(HungDisksTest, StateDiskThatHangsInASync) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartBoth();
  const Running before = RunMeanwhile("before");
  // Written, and synced within the next second.
  ASSERT_TRUE(Stored(kStateFile, before.container));
  disk_.Hang();
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectCallsGoOn("later");
  ExpectEndInTime();
}

TEST_F(HungDisksTest, StateIsWrittenWhenItsDiskAnswersAgain) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartBoth();
  ASSERT_TRUE(Stored(kStateFile, RunMeanwhile("before").container));
  disk_.Hang();
  const Running during = RunMeanwhile("during");
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  disk_.Answer();
  EXPECT_TRUE(Stored(kStateFile, during.container));
}

TEST_F(HungDisksTest, DumpDiskThatHangs) {
  if (!Mount("dump")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  StartRuntime();
  StartDaemon(StaticFlags({"-dump", "reset,full:.*", "-dump-file", Path("dump/calls")}));
  ASSERT_TRUE(Logged("the runtime holds"));
  RunMeanwhile("before");
  ASSERT_TRUE(Stored("calls", "CreateContainer"));
  disk_.Hang();
  RunMeanwhile("during");
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectCallsGoOn("later");
  ExpectEndInTime();
  EXPECT_TRUE(Logged("the rest of the dump was dropped"));
}

// Containers are created without a file that tells their CPUs: the first one after a second, the
// next ones at once.
TEST_F(HungDisksTest, DiskOfTheCpuFilesThatHangs) {
  if (!Mount("files")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  std::ofstream(Path("node.yaml")) << "cpuFiles: {Containers: all}\n";
  StartRuntime();
  StartDaemon(StaticFlags({"-config", Path("node.yaml"), "-cpu-file-dir", Path("files/cpus")}));
  ASSERT_TRUE(Logged("the runtime holds"));
  const auto file_of = [](const Running& running) {
    return "cpus/" + running.pod + "_main_0/cpus.env";
  };
  const Running before = RunMeanwhile("before");
  EXPECT_TRUE(Stored(file_of(before), "EXCLUSIVE_CPUS=1\n"));
  disk_.Hang();
  const Running during = RunMeanwhile("during");
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  EXPECT_TRUE(Logged("stage cpu-files did not answer within 1000 ms"));
  EXPECT_THAT(runtime_.FindContainer(during.container)->config.mounts(), testing::IsEmpty());
  ExpectCallsGoOn("later");
  EXPECT_TRUE(Logged("the disk of the CPU files does not answer"));

  disk_.Answer();
  EXPECT_TRUE(Eventually([&] { return !disk_.Content(file_of(during)); })) << "it has no use";
  // The daemon may hear of the disk's answer a little later.
  Running after = RunMeanwhile("after");
  EXPECT_TRUE(Eventually([&] {
    if (!runtime_.FindContainer(after.container)->config.mounts().empty()) return true;
    EXPECT_THAT(Relayed().RemovePod(after.pod), IsOk());
    after = RunMeanwhile("after");
    return false;
  }));
  EXPECT_TRUE(Stored(file_of(after), "EXCLUSIVE_CPUS="));
  EXPECT_THAT(runtime_.FindContainer(after.container)->config.mounts(), testing::SizeIs(1));

  disk_.Hang();
  RunMeanwhile("last");
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectEndInTime();
}

// The kernel's files of what containers use: a cgroup whose read waits for its lock, or a tree on
// a dead FUSE mount (lxcfs).
TEST_F(HungDisksTest, CgroupTreeThatHangs) {
  if (!Mount("root")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  std::filesystem::create_directories(Path("root/sys/fs/cgroup"));
  std::filesystem::create_directories(Path("root/proc"));
  std::ofstream(Path("root/sys/fs/cgroup/cgroup.controllers")) << "cpu memory\n";
  std::ofstream(Path("root/proc/stat")) << "cpu0 1 0 0 1 0 0 0 0 0 0\n";
  std::ofstream(Path("node.yaml")) << "usage: {Interval: 1s}\n";
  StartRuntime();
  StartDaemon(StaticFlags({"-config", Path("node.yaml"), "-host-root", Path("root")}));
  ASSERT_TRUE(Logged("the runtime holds"));
  RunMeanwhile("before");
  ASSERT_EQ(OutputOf("top").first, 0) << OutputOf("top").second;
  disk_.Hang();
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectCallsGoOn("later");
  const std::string hangs = fmt::format("what is used is not known: reading {}/", Path("root"));
  EXPECT_TRUE(Eventually([&] {
    const auto [exit_code, output] = OutputOf("top");
    return exit_code != 0 && output.find(hangs) != std::string::npos;
  })) << OutputOf("top").second;
  EXPECT_THAT(OutputOf("status").second, HasSubstr(hangs));
  ExpectEndInTime();
}

// The dump's files cannot even be opened.
TEST_F(HungDisksTest, DumpDiskThatHangsAtTheStart) {
  if (!Mount("dump")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  disk_.Hang();
  StartRuntime();
  StartDaemon(StaticFlags({"-dump", "reset,full:.*", "-dump-file", Path("dump/calls")}));
  ASSERT_TRUE(Logged("the runtime holds"));
  ASSERT_TRUE(disk_.WaitForCall(kPatience));
  ExpectCallsGoOn("during");
  disk_.Answer();
  RunMeanwhile("after");
  EXPECT_TRUE(Stored("calls", "CreateContainer"));
}

// A full file system under the sockets (/run): calls go on without being noted.
class FullRunTest : public HungThingsTest {
 protected:
  static constexpr char kRelay[] = "run/relay.sock";

  ~FullRunTest() override { ::umount2(Path("run").c_str(), MNT_DETACH); }

  // A small tmpfs, which this thread and the processes that it starts see.
  bool Mount() {
    std::filesystem::create_directory(Path("run"));
    if (::unshare(CLONE_NEWNS) != 0) return false;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return ::mount("run", Path("run").c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  void Fill() {
    std::ofstream filler(Path("run/filler"));
    for (int i = 0; i < 64; ++i)
      filler << std::string(1024, 'x') << std::flush;
  }
  void StartOnIt() {
    StartDaemon(StaticFlags({"-relay-socket", Path(kRelay)}));
    ASSERT_TRUE(Logged("the runtime holds"));
  }
  Running RunOne(const std::string& name) {
    CriClient client(Path(kRelay));
    return Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", 1));
  }
};

TEST_F(FullRunTest, DelaysNothingAndIsAProblem) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a tmpfs here";
  StartRuntime();
  StartOnIt();
  Fill();
  const Running during = RunOne("during");
  EXPECT_EQ(CpusAtRuntime(during.container).size(), 1);
  EXPECT_TRUE(Logged("open calls cannot be noted: cannot write"));
  EXPECT_THAT(OutputOf("status").second, HasSubstr("calls under way cannot be noted"));
  EXPECT_FALSE(std::filesystem::exists(Path("run/relay.sock.calls")));
  daemon_->Kill();
  StartOnIt();
  EXPECT_EQ(CpusAtRuntime(during.container).size(), 1);
  std::filesystem::remove(Path("run/filler"));
  RunOne("after");
  EXPECT_TRUE(std::filesystem::exists(Path("run/relay.sock.calls")));
  EXPECT_THAT(OutputOf("status").second,
              testing::Not(HasSubstr("calls under way cannot be noted")));
}

// A daemon starts with the runtime's report and its command line. When the disk answers, the files
// of an earlier run come too late to be used, except for a configuration in whose place nothing was
// delivered.
class DeadDiskAtStartTest : public HungDisksTest {
 protected:
  // Leaves the files of a last run on a disk that hangs from then on.
  void LeaveBehind(const std::function<void()>& life) {
    StartBoth();
    life();
    EXPECT_EQ(daemon_->Terminate().value_or(-1), 0);
    disk_.Hang();
  }
  void StartOnIt() {
    StartDaemon(StaticFlags());
    ASSERT_NE(daemon_, nullptr);
    EXPECT_TRUE(Logged("does not answer"));
  }
  // Since this start.
  int DeliveriesInForce() const {
    const std::string log = daemon_->Log();
    const std::string in_force = "the configuration from agent is in force";
    int count = 0;
    for (size_t at = log.find("does not answer");
         (at = log.find(in_force, at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
  std::string Deliver(const std::string& section, const std::string& text) {
    v1::SetConfigRequest request;
    (*request.mutable_config())[section] = text;
    CriClient client(Path("config.sock"));
    const CallResult result = client.Call("/v1.Config/SetConfig", {request.SerializeAsString()});
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    return result.messages.empty() ? "no answer" : result.messages.front();
  }
};

TEST_F(DeadDiskAtStartTest, ServesKeepsWhatIsNewAndRestoresTheConfiguration) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  Running before;
  Running gone;
  LeaveBehind([&] {
    EXPECT_EQ(Deliver("logger", "Level: debug"), "");
    ASSERT_TRUE(Stored("config", "debug"));
    before = RunMeanwhile("before");
    gone = RunMeanwhile("gone");
    ASSERT_TRUE(Stored(kStateFile, gone.container));
  });
  ASSERT_THAT(Direct().RemovePod(gone.pod), IsOk());
  StartOnIt();
  const CpuSet cpus = CpusAtRuntime(before.container);
  ExpectCallsGoOn("during");
  EXPECT_EQ(CpusAtRuntime(before.container), cpus);
  const Running during = RunMeanwhile("later");
  disk_.Answer();
  EXPECT_TRUE(Stored(kStateFile, during.container));
  EXPECT_TRUE(Stored(kStateFile, before.container));
  EXPECT_EQ(disk_.Content(kStateFile)->find(gone.container), std::string::npos);
  EXPECT_EQ(CpusAtRuntime(before.container), cpus);
  EXPECT_TRUE(Eventually([&] { return DeliveriesInForce() == 1; }));
}

// By /proc/PID/status.
bool Catches(const std::string& status, std::initializer_list<int> signals) {
  const std::string key = "SigCgt:";
  const size_t at = status.find(key);
  if (at == std::string::npos) return false;
  const uint64_t caught = std::stoull(status.substr(at + key.size()), nullptr, 16);
  return std::ranges::all_of(signals,
                             [caught](int each) { return (caught >> (each - 1) & 1) != 0; });
}

// The start waits for the disk, and takes long enough for signals to come before their tasks.
TEST_F(DeadDiskAtStartTest, SignalsDuringTheStartAreHandledAfterIt) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  disk_.Hang();
  StartRuntime();
  std::vector<std::string> argv = StaticFlags({"-logger-level", "info"});
  argv.insert(argv.begin(), Program("cri-resmgr"));
  const auto process = Must(ChildProcess::Start(argv, Path("early.log")));
  const std::string status = fmt::format("/proc/{}/status", process->pid());
  ASSERT_TRUE(Eventually([&] { return Catches(TextOf(status), {SIGHUP, SIGUSR1}); }));
  process->Signal(SIGHUP);
  process->Signal(SIGUSR1);
  EXPECT_TRUE(FileHas("early.log", "SIGHUP: there is no configuration file to read again"));
  EXPECT_TRUE(FileHas("early.log", "SIGUSR1: debug messages are on"));
  EXPECT_TRUE(process->Running()) << TextOf(Path("early.log"));
}

TEST_F(DeadDiskAtStartTest, EndsInTime) {
  if (!Mount("state")) GTEST_SKIP() << "cannot mount FUSE file systems here";
  disk_.Hang();
  StartRuntime();
  StartOnIt();
  ExpectCallsGoOn("during");
  ExpectEndInTime();
}

}  // namespace
}  // namespace resmgr::test
