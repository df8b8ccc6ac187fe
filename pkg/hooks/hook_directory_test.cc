// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_directory.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/hooks/hook_file.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/hooks/hook_servers.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/captured_log.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::hooks {
namespace {

namespace fs = std::filesystem;
using resmgr::test::Must;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fails;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HookDirectoryTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.File(name)) << text;
  }
  std::vector<HookFileText> Read() const {
    auto files = ReadHookDirectory(directory_.path());
    EXPECT_THAT(files, test::IsOk());
    return files.ok() ? *std::move(files) : std::vector<HookFileText>();
  }
  static std::vector<std::string> Names(const std::vector<HookFileText>& files) {
    std::vector<std::string> names;
    names.reserve(files.size());
    for (const HookFileText& file : files)
      names.push_back(file.name);
    return names;
  }

  const TempDir directory_;
};

TEST_F(HookDirectoryTest, TakesOnlyNamesOfHookFilesInTheirOrder) {
  for (const char* name : {"b.json", "a.json", ".c.json", "djson", "e.json.tmp"})
    Write(name, name);
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("a.json", "b.json"));
  EXPECT_EQ(files[0].text, StatusOr<std::string>("a.json"));
}

TEST_F(HookDirectoryTest, AnAbsentDirectoryHasNoFiles) {
  const auto files = Must(ReadHookDirectory(directory_.File("absent")));
  EXPECT_THAT(files, IsEmpty());
}

TEST_F(HookDirectoryTest, FollowsTheLinksOfAConfigMap) {
  fs::create_directory(directory_.File("..1"));
  Write("..1/k.json", "text");
  fs::create_directory_symlink("..1", directory_.File("..data"));
  fs::create_symlink("..data/k.json", directory_.File("k.json"));
  fs::create_symlink("nowhere", directory_.File("gone.json"));
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("k.json"));
  EXPECT_EQ(files[0].text, StatusOr<std::string>("text"));
}

// Reading a FIFO without a writer would hang; with a writer it might never end.
TEST_F(HookDirectoryTest, WhatIsNoRegularFileIsNotRead) {
  ASSERT_EQ(::mkfifo(directory_.File("fifo.json").c_str(), 0600), 0);
  fs::create_directory(directory_.File("folder.json"));
  const auto files = Read();
  ASSERT_THAT(Names(files), ElementsAre("fifo.json", "folder.json"));
  for (const HookFileText& file : files)
    EXPECT_THAT(file.text, test::Fails(StatusCode::kInvalidArgument,
                                       testing::HasSubstr("is not a regular file")));
}

TEST_F(HookDirectoryTest, FilesAreBoundedInLengthAndNumber) {
  Write("000.json", std::string(kLongestHookFile, ' '));
  Write("001.json", std::string(kLongestHookFile + 1, ' '));
  for (size_t i = 100; i < 100 + 2 * kMostHookFilesRead; ++i)
    Write(std::to_string(i) + ".json", "");
  const auto files = Read();
  ASSERT_EQ(files.size(), kMostHookFilesRead + 1);
  EXPECT_FALSE(files[kMostHookFiles - 1].beyond_limit);
  EXPECT_TRUE(files[kMostHookFiles].beyond_limit);
  EXPECT_THAT(files[kMostHookFilesRead - 1].text, test::IsOk());
  EXPECT_THAT(files.back().text, test::HasCode(StatusCode::kResourceExhausted));
  EXPECT_THAT(files[0].text, test::IsOk());
  EXPECT_THAT(files[1].text, test::HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(files[kMostHookFiles - 1].name, "161.json");
}

class HookWatchTest : public testing::Test {
 protected:
  using Files = HookDirectoryWatch::Files;
  using Milliseconds = std::chrono::milliseconds;

  static constexpr Milliseconds kNever = std::chrono::hours(1);

  HookWatchTest() { std::filesystem::create_directory(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }
  void Replace(const std::string& name, const std::string& text) const {
    Write(name + ".tmp", text);
    std::filesystem::rename(Path(name + ".tmp"), Path(name));
  }
  // Without `poll` only inotify reports changes.
  void Start(Milliseconds poll = kNever) {
    options_.poll = poll;
    watch_ = std::make_unique<HookDirectoryWatch>(loop_, options_, [this](const Files& files) {
      ++updates_;
      seen_.clear();
      for (const HookFileText& file : files)
        seen_ += file.name + "=" + file.text.value_or("(none)") + ";";
      if (look_) look_(files);
    });
    EXPECT_EQ(updates_, 0);
    EXPECT_FALSE(watch_->known());
  }
  bool Sees(const std::string& expected) {
    const bool seen = RunUntil(loop_, [&] { return seen_ == expected; });
    EXPECT_EQ(seen_, expected);
    return seen;
  }

  const TempDir place_;
  const std::string directory_ = place_.File("d");
  EventLoop loop_;
  HookDirectoryWatch::Options options_{.directory = directory_, .settle = Milliseconds(5)};
  std::function<void(const Files&)> look_;
  int updates_ = 0;
  std::string seen_ = "(nothing read)";
  std::unique_ptr<HookDirectoryWatch> watch_;
};

TEST_F(HookWatchTest, SeesWhatIsWrittenInPlaceReplacedAndDeleted) {
  Write("a.json", "1");
  Start();
  ASSERT_TRUE(Sees("a.json=1;"));
  EXPECT_TRUE(watch_->known());
  Write("a.json", "2");
  ASSERT_TRUE(Sees("a.json=2;"));
  Replace("b.json", "3");
  ASSERT_TRUE(Sees("a.json=2;b.json=3;"));
  std::filesystem::remove(Path("a.json"));
  ASSERT_TRUE(Sees("b.json=3;"));
  ASSERT_EQ(::mkfifo(Path("x.json").c_str(), 0600), 0);
  ASSERT_TRUE(Sees("b.json=3;x.json=(none);"));
}

// Input K05.
TEST_F(HookWatchTest, ADeletionCountsWithinASecond) {
  options_.settle = HookDirectoryWatch::Options{.directory = ""}.settle;
  Write("a.json", "1");
  Start();
  ASSERT_TRUE(Sees("a.json=1;"));
  std::filesystem::remove(Path("a.json"));
  EXPECT_TRUE(RunUntil(
      loop_, [&] { return seen_.empty(); }, std::chrono::seconds(1)));
}

TEST_F(HookWatchTest, SeesAConfigMapsLinkMove) {
  for (const char* version : {"1", "2"}) {
    std::filesystem::create_directory(Path(fmt::format("..{}", version)));
    Write(fmt::format("..{}/k.json", version), version);
  }
  std::filesystem::create_directory_symlink("..1", Path("..data"));
  std::filesystem::create_symlink("..data/k.json", Path("k.json"));
  Start();
  ASSERT_TRUE(Sees("k.json=1;"));
  std::filesystem::create_directory_symlink("..2", Path("..data_tmp"));
  std::filesystem::rename(Path("..data_tmp"), Path("..data"));
  ASSERT_TRUE(Sees("k.json=2;"));
}

TEST_F(HookWatchTest, SeesADirectoryComeGoAndComeAgain) {
  std::filesystem::remove(directory_);
  Start(Milliseconds(20));
  ASSERT_TRUE(Sees(""));
  EXPECT_TRUE(watch_->known());
  for (const char* version : {"1", "2", "3"}) {
    std::filesystem::create_directory(directory_);
    Write("a.json", version);
    ASSERT_TRUE(Sees(fmt::format("a.json={};", version)));
    std::filesystem::remove_all(directory_);
    ASSERT_TRUE(Sees(""));
  }
  // Another directory replaces it, and only inotify reports changes in it.
  std::filesystem::create_directory(place_.File("other"));
  std::filesystem::rename(place_.File("other"), directory_);
  ASSERT_TRUE(RunUntil(loop_, [&, before = updates_] { return updates_ > before + 2; }));
  Write("a.json", "4");
  ASSERT_TRUE(Sees("a.json=4;"));
}

TEST_F(HookWatchTest, WhatInotifyDoesNotTellIsPolled) {
  std::ofstream(place_.File("target")) << "1";
  std::filesystem::create_symlink(place_.File("target"), Path("a.json"));
  Start(Milliseconds(20));
  ASSERT_TRUE(Sees("a.json=1;"));
  std::ofstream(place_.File("target")) << "2";
  ASSERT_TRUE(Sees("a.json=2;"));
}

TEST_F(HookWatchTest, ManyChangesAreOneRead) {
  options_.settle = Milliseconds(300);
  Start();
  ASSERT_TRUE(Sees(""));
  for (int i = 0; i < 100; ++i)
    Write("a.json", std::to_string(i));
  ASSERT_TRUE(Sees("a.json=99;"));
  EXPECT_LE(updates_, 4);
}

// Input K04: calls always find the old server or the new one.
TEST_F(HookWatchTest, AFileThatIsReplacedAThousandTimesIsAlwaysWhole) {
  const auto text = [](int endpoint) {
    return fmt::format(
        R"({{"remote-endpoint": "/run/{}", "runtime-hooks": ["PreCreateContainer"]}})", endpoint);
  };
  options_.settle = Milliseconds(1);
  h2::FlushQueue flushes(loop_);
  HookServers servers(loop_, flushes, std::chrono::seconds(2));
  Replace("a.json", text(0));
  int wrong = 0;
  const auto count = [&] {
    const auto asked = servers.ServersOf(HookPoint::kPreCreateContainer);
    if (asked.size() != 1 || !asked[0]->settings().endpoint.starts_with("/run/")) ++wrong;
  };
  look_ = [&](const Files& files) {
    servers.Update(files);
    if (files.size() != 1 || !files[0].text.ok() || !files[0].text->ends_with("}")) ++wrong;
    count();
  };
  Start(Milliseconds(1));
  ASSERT_TRUE(RunUntil(loop_, [&] { return updates_ > 0; }));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 1; i <= 1000; ++i)
      Replace("a.json", text(i));
    done = true;
  });
  EXPECT_TRUE(RunUntil(loop_, [&] {
    count();
    return done &&
           servers.ServersOf(HookPoint::kPreCreateContainer)[0]->settings().endpoint == "/run/1000";
  }));
  writer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(updates_, 2);
}

// tmpfs does this while a rename replaces the file.
TEST_F(HookWatchTest, AFileThatAListingLeavesOutIsNotGone) {
  Write("a.json", "1");
  const auto leave_out = std::make_shared<std::atomic<int>>(0);
  options_.read = [leave_out](const std::string& directory) -> StatusOr<Files> {
    if (leave_out->fetch_sub(1) > 0) return Files();
    return ReadHookDirectory(directory);
  };
  Start();
  ASSERT_TRUE(Sees("a.json=1;"));
  *leave_out = 1;
  look_ = [](const Files& files) { EXPECT_FALSE(files.empty()); };
  Write("b.json", "2");
  ASSERT_TRUE(Sees("a.json=1;b.json=2;"));
  *leave_out = 1000;
  const int before = updates_;
  Write("b.json", "3");
  EXPECT_FALSE(RunUntil(
      loop_, [&] { return updates_ != before; }, Milliseconds(200)));
}

TEST_F(HookWatchTest, AReadThatFailsLeavesEverythingInForce) {
  const auto fail = std::make_shared<std::atomic<bool>>(false);
  const auto reads = std::make_shared<std::atomic<int>>(0);
  options_.read = [fail, reads](const std::string& directory) -> StatusOr<Files> {
    ++*reads;
    if (*fail) return Unavailable("input/output error");
    return ReadHookDirectory(directory);
  };
  Write("a.json", "1");
  Start(Milliseconds(5));
  ASSERT_TRUE(Sees("a.json=1;"));
  *fail = true;
  const int failing = *reads + 2;
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads >= failing; }));
  const int before = updates_;
  Write("a.json", "2");
  const test::CapturedLog log;
  const int more = *reads + 10;
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads >= more; }));
  EXPECT_EQ(log.Text(), "") << "the failure is told once";
  EXPECT_EQ(updates_, before);
  *fail = false;
  ASSERT_TRUE(Sees("a.json=2;"));
}

TEST_F(HookWatchTest, AReadThatHangsIsTheOnlyOneAndIsToldOnce) {
  const auto hang = std::make_shared<std::promise<void>>();
  const auto reads = std::make_shared<std::atomic<int>>(0);
  options_.read = [hung = hang->get_future().share(), reads](const std::string& directory) {
    auto files = ReadHookDirectory(directory);
    if (++*reads == 2) hung.wait();
    return files;
  };
  // Longer than a read takes on a busy machine, and shorter than the wait below.
  options_.deadline = Milliseconds(500);
  Write("a.json", "1");
  Start(Milliseconds(5));
  ASSERT_TRUE(Sees("a.json=1;"));
  const test::CapturedLog log;
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads == 2; }));
  const int before = updates_;
  Write("a.json", "2");
  EXPECT_FALSE(RunUntil(
      loop_, [&] { return *reads > 2 || updates_ != before; }, Milliseconds(1'500)));
  EXPECT_EQ(log.Times("does not answer"), 1) << log.Text();
  hang->set_value();
  ASSERT_TRUE(Sees("a.json=2;"));
}

TEST_F(HookWatchTest, ADiskThatIsAlwaysSlowIsToldOnce) {
  const auto reads = std::make_shared<std::atomic<int>>(0);
  const auto slow = std::make_shared<std::atomic<bool>>(true);
  options_.read = [reads, slow](const std::string& directory) -> StatusOr<Files> {
    if (*slow) std::this_thread::sleep_for(Milliseconds(1'300));
    // Some reads fail at their end.
    if (++*reads % 2 == 0 && *slow) return Unavailable("input/output error");
    return ReadHookDirectory(directory);
  };
  // Long enough for reading a file on a busy machine.
  options_.deadline = Milliseconds(1'000);
  Write("a.json", "1");
  const test::CapturedLog log;
  Start(Milliseconds(5));
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads >= 4; }));
  *slow = false;
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads >= 8; }));
  for (const char* const text : {"does not answer", "input/output error", "is read again"})
    EXPECT_EQ(log.Times(text), 1) << text << " in: " << log.Text();
}

TEST_F(HookWatchTest, ItsEndDoesNotWaitForAReadThatHangs) {
  const auto hang = std::make_shared<std::promise<void>>();
  const auto reads = std::make_shared<std::atomic<int>>(0);
  options_.read = [hung = hang->get_future().share(), reads](const std::string&) {
    ++*reads;
    hung.wait();
    return StatusOr<Files>(Files());
  };
  Start();
  ASSERT_TRUE(RunUntil(loop_, [&] { return *reads == 1; }));
  const auto begin = EventLoop::Clock::now();
  watch_.reset();
  EXPECT_LT(EventLoop::Clock::now() - begin, std::chrono::seconds(10));
  hang->set_value();
  EXPECT_FALSE(RunUntil(
      loop_, [&] { return updates_ != 0; }, Milliseconds(50)));
}

StatusOr<HookFile> ParseFile(const std::string& text) {
  return ParseHookFile("koordlet.json", text, seconds(2));
}

// A file with these members besides its endpoint.
std::string FileWith(const std::string& members) {
  return R"({"remote-endpoint": "/run/k.sock", )" + members + "}";
}

// Input K01: tabs, a double slash, hooks in any order.
constexpr const char* kOfKoordlet =
    "{\n\t\"remote-endpoint\": \"/var/run/koordlet//koordlet.sock\",\n"
    "\t\"failure-policy\": \"Ignore\",\n\t\"runtime-hooks\": [\n"
    "\t\t\"PreUpdateContainerResources\",\n\t\t\"PreRunPodSandbox\",\n"
    "\t\t\"PreCreateContainer\"\n\t]\n}";

TEST(HookFileTest, ReadsWhatKoordletWrites) {
  const auto file = Must(ParseFile(kOfKoordlet));
  EXPECT_EQ(file.settings.file, "koordlet.json");
  EXPECT_EQ(file.settings.endpoint, "/var/run/koordlet/koordlet.sock");
  EXPECT_EQ(file.settings.failure, FailurePolicy::kIgnore);
  EXPECT_EQ(file.settings.timeout, seconds(2));
  EXPECT_EQ(file.settings.style, AnswerStyle::kEcho);
  EXPECT_THAT(NamesOf(file.settings.points),
              ElementsAre("PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources"));
  EXPECT_THAT(file.warnings, IsEmpty());
}

// Input K02.
TEST(HookFileTest, TheInertHookIsAWarning) {
  const auto file = Must(
      ParseFile(FileWith(R"("runtime-hooks": ["PreRemoveRunPodSandbox", "PreStartContainer"])")));
  EXPECT_THAT(NamesOf(file.settings.points), ElementsAre("PreStartContainer"));
  EXPECT_THAT(file.warnings, ElementsAre(HasSubstr("PreRemoveRunPodSandbox is never called")));
}

TEST(HookFileTest, UnknownNamesAreWarningsWithASuggestion) {
  const auto file = Must(
      ParseFile(FileWith(R"("runtime-hooks": ["PreCreateContainr"], "failure-polcy": "Fail")")));
  EXPECT_TRUE(file.settings.points.none());
  EXPECT_EQ(file.settings.failure, FailurePolicy::kIgnore);
  EXPECT_THAT(file.warnings, ElementsAre(HasSubstr("did you mean failure-policy?"),
                                         HasSubstr("did you mean PreCreateContainer?")));
}

TEST(HookFileTest, ReadsOurOwnKeys) {
  const auto file =
      Must(ParseFile(FileWith(R"("mode": "sparse", "timeout": "500ms", "failure-policy": "Fail",
                  "runtime-hooks": ["PostStopContainer"])")));
  EXPECT_EQ(file.settings.style, AnswerStyle::kSparse);
  EXPECT_EQ(file.settings.timeout, milliseconds(500));
  EXPECT_EQ(file.settings.failure, FailurePolicy::kFail);
}

TEST(HookFileTest, EndpointsMayHaveAScheme) {
  const auto file = ParseFile(R"({"remote-endpoint": "unix:///run//k.sock", "runtime-hooks": []})");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->settings.endpoint, "/run/k.sock");
}

TEST(HookFileTest, NullAndEmptyTextAreAbsent) {
  const auto file = Must(ParseFile(
      FileWith(R"("failure-policy": "", "runtime-hooks": null, "mode": null, "timeout": null)")));
  EXPECT_EQ(file.settings.failure, FailurePolicy::kIgnore);
  EXPECT_TRUE(file.settings.points.none());
}

TEST(HookFileTest, SaysWhatIsWrong) {
  const struct {
    std::string text;
    std::string why;
  } cases[] = {
      {"", "it is empty"},
      {" \n\t", "it is empty"},
      {R"({"remote-endpoint": "/a)", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"null", "not a JSON object"},
      {"{}", "no remote-endpoint"},
      {R"({"remote-endpoint": null})", "remote-endpoint is not a string"},
      {R"({"remote-endpoint": 7})", "remote-endpoint is not a string"},
      {R"({"remote-endpoint": ""})", "not the absolute path"},
      {R"({"remote-endpoint": "run/k.sock"})", "not the absolute path"},
      {R"({"remote-endpoint": "unix://k.sock"})", "not the absolute path"},
      {R"({"remote-endpoint": "tcp://1.2.3.4:5"})", "not the absolute path"},
      {R"({"remote-endpoint": "/)" + std::string(200, 'a') + R"("})", "remote-endpoint: "},
      {FileWith(R"("failure-policy": "Faill")"), "failure-policy: \"Faill\" is not one of"},
      {FileWith(R"("failure-policy": true)"), "failure-policy is not a string"},
      {FileWith(R"("runtime-hooks": "PreCreateContainer")"), "runtime-hooks is not a list"},
      {FileWith(R"("runtime-hooks": [1])"), "not a string"},
      {FileWith(R"("mode": "Echo")"), "mode: \"Echo\" is not one of echo, sparse"},
      {FileWith(R"("timeout": "0s")"), "timeout: "},
      {FileWith(R"("timeout": "3m")"), "timeout: "},
      {FileWith(R"("timeout": 2)"), "timeout is not a string"},
      {FileWith(R"("x": [[[[[[[[]]]]]]]])"), "more than 8 levels"},
      {std::string(kLongestHookFile + 1, ' '), "more than 65536 bytes"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(ParseFile(text), Fails(StatusCode::kInvalidArgument, HasSubstr(why)))
        << text.substr(0, 100);
  }
}

TEST(HookFileTest, WarningsAreBounded) {
  std::string hooks;
  for (int i = 0; i < 1000; ++i)
    hooks += fmt::format("{}\"h{}\"", hooks.empty() ? "" : ",", i);
  const auto file = Must(ParseFile(FileWith(R"("runtime-hooks": [)" + hooks + "]")));
  ASSERT_EQ(file.warnings.size(), kMostHookWarnings);
  EXPECT_EQ(file.warnings.back(), "992 more warnings are left out");
}

TEST(HookNamesTest, EveryPointHasItsName) {
  for (size_t i = 0; i < kHookPoints; ++i) {
    const auto point = static_cast<HookPoint>(i);
    EXPECT_EQ(HookPointOf(NameOf(point)), point);
    EXPECT_EQ(MethodOf(point),
              fmt::format("/runtime.v1alpha1.RuntimeHookService/{}Hook", NameOf(point)));
  }
  EXPECT_EQ(NameOf(HookPoint::kPreUpdateContainerResources), "PreUpdateContainerResources");
  EXPECT_EQ(NameOf(HookPoint::kPostStopContainer), "PostStopContainer");
  EXPECT_EQ(HookPointOf(kInertPoint), std::nullopt);
  EXPECT_EQ(HookPointOf("precreatecontainer"), std::nullopt);
}

}  // namespace
}  // namespace resmgr::hooks
