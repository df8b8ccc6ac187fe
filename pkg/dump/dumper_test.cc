// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/dumper.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/dump_fixture.h"

namespace resmgr::dump {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using DumperTest = DumpFixture;

void WriteText(const std::string& path, std::string_view text) {
  std::ofstream(path) << text;
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

bool WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

size_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// Blocks every caller until it is opened.
class Gate {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  bool WaitForVisitor() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return waiting_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

TEST_F(DumperTest, DoesNothingUnlessAsked) {
  const size_t threads = Threads();
  ASSERT_TRUE(Start({}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kCreate), Interest::kNone);
  FailedCall(kCreate, runtime::v1::CreateContainerRequest(), 2, "x");
  EXPECT_EQ(Threads(), threads);
  EXPECT_THAT(Log(), IsEmpty());
}

TEST_F(DumperTest, FileAloneBringsTheBuiltInRules) {
  ASSERT_TRUE(Start({.file = PathOf("dump")}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kCreate), Interest::kMessages);
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kNone);
}

TEST_F(DumperTest, FilesAreEmptiedAndPrivate) {
  for (const std::string name : {"dump", "r.jsonl"}) {
    WriteText(PathOf(name), "old text");
    ASSERT_EQ(::chmod(PathOf(name).c_str(), 0644), 0);
  }
  ASSERT_TRUE(
      Start({.specs = {"name:.*,record:" + PathOf("r.jsonl")}, .file = PathOf("dump")}).ok());
  Log();
  EXPECT_THAT(LinesOf(PathOf("dump")), IsEmpty());
  EXPECT_THAT(LinesOf(PathOf("r.jsonl")), ElementsAre(HasSubstr("recording")));
  EXPECT_EQ(ModeOf(PathOf("dump")), 0600);
  EXPECT_EQ(ModeOf(PathOf("r.jsonl")), 0600);
}

TEST_F(DumperTest, NewFilesArePrivate) {
  ASSERT_TRUE(Start({.file = PathOf("dump")}).ok());
  Log();
  EXPECT_EQ(ModeOf(PathOf("dump")), 0600);
}

TEST_F(DumperTest, MistakesAreClearErrors) {
  const auto error = [this](Dumper::Options options) {
    const Status status = Start(std::move(options));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  };
  EXPECT_THAT(error({.specs = {"a:b:c"}}), HasSubstr("'a:b:c'"));
  EXPECT_THAT(error({.specs = {"record:" + PathOf("x/../r")}, .file = PathOf("r")}),
              HasSubstr("the same file"));
  EXPECT_THAT(error({.file = PathOf("else"), .file_directory = PathOf("dumps")}),
              AllOf(HasSubstr(PathOf("else")), HasSubstr(PathOf("dumps"))));
  EXPECT_THAT(
      error({.specs = {"record:" + PathOf("else")}, .recording_directory = PathOf("dumps")}),
      AllOf(HasSubstr(PathOf("else")), HasSubstr(PathOf("dumps"))));
}

TEST_F(DumperTest, AProbeTellsWhatIsInTheWayAndTouchesNothing) {
  const auto probe = [](Dumper::Options options) {
    const auto settings = Dumper::Read(std::move(options));
    EXPECT_TRUE(settings.ok());
    return std::string(Message(Dumper::Probe(*settings)));
  };
  EXPECT_THAT(probe({.file = PathOf("no/such/dump")}),
              AllOf(HasSubstr("no/such/dump"), HasSubstr("No such file")));
  EXPECT_THAT(probe({.specs = {"record:" + directory_.path()}}),
              AllOf(HasSubstr(directory_.path()), HasSubstr("directory")));
  std::filesystem::create_directory_symlink(directory_.path(), PathOf("link"));
  EXPECT_THAT(probe({.specs = {"record:" + PathOf("link/r")}, .file = PathOf("r")}),
              HasSubstr("the same file"));
  WriteText(PathOf("old"), "old text");
  EXPECT_EQ(probe({.specs = {"record:" + PathOf("new")}, .file = PathOf("old")}), "");
  EXPECT_THAT(LinesOf(PathOf("old")), ElementsAre("old text"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("new")));
}

TEST_F(DumperTest, AFileThatCannotBeOpenedIsAWarningAndTriedAgain) {
  std::mutex mutex;
  std::condition_variable changed;
  bool works = false;
  int tries = 0;
  bool opened = false;
  ASSERT_TRUE(
      Start({.specs = {"reset,name:.*"},
             .file = PathOf("dump"),
             .open = [&](const OutputPlace& place) -> StatusOr<std::unique_ptr<OutputFile>> {
               const std::lock_guard lock(mutex);
               ++tries;
               opened = works;
               changed.notify_all();
               if (!works) return InvalidArgument("no disk for '{}'", place.path);
               return OutputFile::Create(place);
             },
             .retry_pause = std::chrono::milliseconds(20)})
          .ok());
  const auto wait = [&](const std::function<bool()>& condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), condition);
  };
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  // The thread retries even without a call to write about. Between two tries it writes waiting
  // events.
  int before = -1;
  ASSERT_TRUE(wait([&] {
    if (before < 0) before = tries;
    return tries >= before + 2;
  }));
  {
    const std::lock_guard lock(mutex);
    works = true;
  }
  ASSERT_TRUE(wait([&] { return opened; }));
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  ASSERT_TRUE(WaitFor([this] { return !LinesOf(PathOf("dump")).empty(); }));
  EXPECT_THAT(LinesOf(PathOf("dump")), ElementsAre(HasSubstr("StartContainer")));
  // Weeks later it is rotated, and cannot be made anew.
  {
    const std::lock_guard lock(mutex);
    works = false;
  }
  std::filesystem::rename(PathOf("dump"), PathOf("dump.1"));
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(wait([&] { return !opened; }));
  const auto no_disk = AllOf(StartsWith("!no disk"), HasSubstr("retrying"));
  EXPECT_THAT(Log(), ElementsAre(no_disk, HasSubstr("Version"), HasSubstr("StartContainer"),
                                 HasSubstr("Version"), no_disk));
}

TEST_F(DumperTest, AFileThatWasMovedAwayIsMadeAnew) {
  ASSERT_TRUE(
      Start({.specs = {"reset,name:.*,record:" + PathOf("r.jsonl")}, .file = PathOf("dump")}).ok());
  const auto has = [](const std::string& path, const char* text) {
    return WaitFor([&] {
      return std::ranges::any_of(LinesOf(path), [text](const std::string& line) {
        return line.find(text) != std::string::npos;
      });
    });
  };
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  ASSERT_TRUE(has(PathOf("dump"), "StartContainer"));
  ASSERT_TRUE(has(PathOf("r.jsonl"), "StartContainer"));
  std::filesystem::rename(PathOf("dump"), PathOf("dump.1"));
  std::filesystem::remove(PathOf("r.jsonl"));
  // The call that finds the file moved may still be in the old one.
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(WaitFor([this] { return std::filesystem::exists(PathOf("r.jsonl")); }));
  Call(kRun, runtime::v1::RunPodSandboxRequest(), runtime::v1::RunPodSandboxResponse());
  EXPECT_TRUE(has(PathOf("dump"), "RunPodSandbox"));
  EXPECT_TRUE(has(PathOf("r.jsonl"), "RunPodSandbox"));
  EXPECT_THAT(LinesOf(PathOf("r.jsonl")).at(0), HasSubstr("recording"));
  EXPECT_EQ(ModeOf(PathOf("dump")), 0600);
  EXPECT_FALSE(dumper_->failing());
}

// While it exists no thread can be made: each would have a stack beyond the address space.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    ::pthread_getattr_default_np(&huge);
    ::pthread_attr_setstacksize(&huge, size_t{1} << 60);
    ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST_F(DumperTest, WithoutAThreadTheDumpIsRefusedAndTheDaemonGoesOn) {
  ASSERT_TRUE(Start({}).ok());
  const auto start = [this] {
    return Reconfigure({.specs = {"reset,name:.*"}, .file = PathOf("dump")});
  };
  {
    const NoThreads none;
    Status refused;
    EXPECT_NO_THROW(refused = start());
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kNone);
  }
  EXPECT_TRUE(start().ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  Log();
  EXPECT_THAT(LinesOf(PathOf("dump")), ElementsAre(HasSubstr("Version")));
}

TEST_F(DumperTest, AHungDiskDelaysNoCall) {
  // Shared with the thread that hangs in it, which outlives the test.
  const auto gate = std::make_shared<Gate>();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"},
                     .file = PathOf("dump"),
                     .open = [gate](const OutputPlace&) -> StatusOr<std::unique_ptr<OutputFile>> {
                       gate->Wait();
                       return InvalidArgument("gone");
                     }})
                  .ok());
  ASSERT_TRUE(gate->WaitForVisitor());
  for (int i = 0; i < 1000; ++i) {
    Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
    ASSERT_TRUE(
        Reconfigure({.specs = {"reset,name:.*"}, .file = PathOf(fmt::format("d{}", i))}).ok());
  }
  EXPECT_FALSE(dumper_->Close(std::chrono::milliseconds(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  // The gate stays shut: otherwise the thread would use this test's log after its end.
  dumper_.reset();
}

TEST_F(DumperTest, FullDiskIsReportedOnceAndTheLogGoesOn) {
  // The file's size is limited to zero: the kernel then behaves as with a full disk.
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"}, .file = PathOf("dump")}).ok());
  const auto waited = [this](size_t lines) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (LogSoFar().size() < lines && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return LogSoFar().size() >= lines;
  };
  struct rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  const bool reported = waited(2);
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  const auto log = Log();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(reported);
  EXPECT_THAT(log, ElementsAre("#1 (passthrough) REQUEST Version",
                               AllOf(StartsWith("!cannot write '" + PathOf("dump") + "'"),
                                     HasSubstr("File too large")),
                               "#2 (passthrough) REQUEST Version"));
}

TEST_F(DumperTest, ReconfigureChangesRulesAndKeepsTheFile) {
  ASSERT_TRUE(Start({.specs = {"reset,name:Version"}, .file = PathOf("dump")}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(Reconfigure({.specs = {"reset,name:StartContainer"}, .file = PathOf("dump")}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kNone);
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  Log();
  EXPECT_THAT(LinesOf(PathOf("dump")),
              ElementsAre(HasSubstr("REQUEST Version"), HasSubstr("REQUEST StartContainer")));
}

TEST_F(DumperTest, ReconfigureMovesToAnotherFileInOrder) {
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"}, .file = PathOf("one")}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(Reconfigure({.specs = {"reset,name:.*"}, .file = PathOf("two")}).ok());
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  Log();
  EXPECT_THAT(LinesOf(PathOf("one")), ElementsAre(HasSubstr("REQUEST Version")));
  EXPECT_THAT(LinesOf(PathOf("two")), ElementsAre(HasSubstr("REQUEST StartContainer")));
}

TEST_F(DumperTest, ReconfigureThatFailsChangesNothing) {
  ASSERT_TRUE(Start({.specs = {"reset,name:Version"}, .file = PathOf("dump")}).ok());
  EXPECT_FALSE(Reconfigure({.specs = {"a:b:c"}}).ok());
  EXPECT_FALSE(Reconfigure({.file = PathOf("x"), .file_directory = PathOf("dumps")}).ok());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  Log();
  EXPECT_THAT(LinesOf(PathOf("dump")), SizeIs(1));
}

TEST_F(DumperTest, ReconfigureTurnsOnAndOff) {
  ASSERT_TRUE(Start({}).ok());
  ASSERT_TRUE(Reconfigure({.specs = {"full:Version"}}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kMessages);
  ASSERT_TRUE(Reconfigure({}).ok());
  EXPECT_EQ(dumper_->WantsMethod(kVersion), Interest::kNone);
  EXPECT_THAT(Log(), IsEmpty());
  EXPECT_EQ(Reconfigure({}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(DumperTest, ReportsAfterCloseAreIgnored) {
  ASSERT_TRUE(Start({.specs = {"reset,name:.*"}}).ok());
  EXPECT_THAT(Log(), IsEmpty());
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  EXPECT_THAT(Log(), IsEmpty());
}

TEST_F(DumperTest, ManyUnheardOfPathsAreAnsweredAlike) {
  ASSERT_TRUE(Start({.specs = {"reset,name:M.*"}}).ok());
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(dumper_->WantsMethod(fmt::format("/s/M{}", i)), Interest::kCalls);
  EXPECT_EQ(dumper_->WantsMethod("/s/X"), Interest::kNone);
}

// Each thread's calls are complete and in its own order.
TEST_F(DumperTest, OrderHoldsWithManyThreads) {
  ASSERT_TRUE(Start({.specs = {"reset,full:.*"}}).ok());
  constexpr uint64_t kThreads = 8;
  constexpr uint64_t kCalls = 200;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < kCalls; ++i) {
        CallRef call;
        call.id = t * kCalls + i;
        call.path = kStart;
        runtime::v1::StartContainerRequest request;
        request.set_container_id(fmt::format("t{}-{:04}", t, i));
        dumper_->OnRequest(call, Payload(request.SerializeAsString()));
        dumper_->OnEnd(call, 5, request.container_id());
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  std::map<std::string, std::vector<std::string>> by_thread;
  const auto log = Log();
  EXPECT_THAT(log, SizeIs(kThreads * kCalls * 3));
  for (const std::string& line : log) {
    if (const size_t at = line.rfind('t'); line.find("-0") != std::string::npos)
      by_thread[line.substr(at, 2)].push_back(line.substr(at + 3) + (line[0] == '!' ? "e" : "r"));
  }
  EXPECT_THAT(by_thread, SizeIs(kThreads));
  for (const auto& [thread, lines] : by_thread) {
    ASSERT_THAT(lines, SizeIs(kCalls * 2)) << thread;
    EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      return a.substr(0, 4) != b.substr(0, 4) ? a < b : a.back() > b.back();
    })) << thread;
  }
}

TEST_F(DumperTest, NeverWaitsForASlowLogAndCountsWhatItDrops) {
  Gate gate;
  int lost = 0;
  const auto count = [&lost] { ++lost; };
  auto dumper = Dumper::Create({.specs = {"reset,name:.*"}, .queue_events = 10, .on_lost = count},
                               [&, keep = Sink()](bool warning, std::string_view line) {
                                 gate.Wait();
                                 keep(warning, line);
                               });
  ASSERT_TRUE(dumper.ok());
  dumper_ = *std::move(dumper);
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(gate.WaitForVisitor());
  for (int i = 0; i < 100; ++i)
    Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  EXPECT_TRUE(dumper_->losing());
  gate.Open();
  const auto log = Log();
  EXPECT_FALSE(dumper_->losing()) << "it has caught up";
  EXPECT_FALSE(dumper_->failing());
  ASSERT_THAT(log, SizeIs(12));
  EXPECT_EQ(log.back(), "!the dump fell behind: 90 calls are missing or incomplete");
  EXPECT_EQ(lost, 90);
}

TEST_F(DumperTest, LossesAreNotedInTheFileAndTheRecording) {
  ASSERT_TRUE(Start({.specs = {"reset,name:.*,record:" + PathOf("r.jsonl")},
                     .file = PathOf("dump"),
                     .queue_events = 0})
                  .ok());
  Call(kStart, runtime::v1::StartContainerRequest(), runtime::v1::StartContainerResponse());
  Log();
  EXPECT_THAT(LinesOf(PathOf("dump")), ElementsAre(HasSubstr("] the dump fell behind: 1 call is")));
  EXPECT_THAT(LinesOf(PathOf("r.jsonl")), ElementsAre(HasSubstr("version"), "{\"lost_calls\":1}"));
}

TEST_F(DumperTest, CloseGivesUpOnALogThatHangs) {
  // Shared with the thread that hangs in it, which may outlive the test.
  const auto gate = std::make_shared<Gate>();
  auto dumper = Dumper::Create({.specs = {"reset,name:.*"}},
                               [gate](bool, std::string_view) { gate->Wait(); });
  ASSERT_TRUE(dumper.ok());
  dumper_ = *std::move(dumper);
  Call(kVersion, runtime::v1::VersionRequest(), runtime::v1::VersionResponse());
  ASSERT_TRUE(gate->WaitForVisitor());
  EXPECT_FALSE(dumper_->Close(std::chrono::milliseconds(1)));
  dumper_.reset();
  gate->Open();
}

}  // namespace
}  // namespace resmgr::dump
