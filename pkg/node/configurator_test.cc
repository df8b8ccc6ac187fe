// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/configurator.h"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/node/testing/fake_policy_host.h"
#include "pkg/node/testing/test_policies.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::Eventually;
using resmgr::test::RunUntil;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr seconds kPatience{60};

// Blocks work until it is opened.
struct Gate {
  Gate() : opened(promise.get_future().share()) {}
  // A configuration that can be read once the gate is open.
  std::function<StatusOr<DeliveredConfig>()> Behind(const std::string& name,
                                                    const std::string& text) const {
    return [opened = opened, config = DeliveredConfig{.name = name, .data = {}, .text = text}] {
      opened.wait();
      return StatusOr<DeliveredConfig>(config);
    };
  }
  std::promise<void> promise;
  std::shared_future<void> opened;
};

class ConfiguratorTest : public testing::Test {
 protected:
  ConfiguratorTest() {
    options_.save = [this](const std::string&, const DeliveredConfig& source) {
      const std::lock_guard lock(mutex_);
      saved_.push_back(source.text.value_or(""));
      return OkStatus();
    };
  }
  ~ConfiguratorTest() override { configurator_.reset(); }

  std::string PathOf(const std::string& name) const { return directory_.File(name); }
  std::string DumpDirectory() const { return PathOf("dumps"); }
  std::string DumpFile(const std::string& name) const { return DumpDirectory() + "/" + name; }

  static std::string TextOf(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  Configurator& configurator() {
    if (configurator_ != nullptr) return *configurator_;
    auto machine = LoadMachine("synthetic:core:4 pu:1");
    reader_.machine = std::make_shared<const Machine>(*std::move(machine));
    options_.reader = std::make_shared<const ConfigReader>(reader_);
    configurator_ = std::make_unique<Configurator>(options_, current_, "the command line");
    return *configurator_;
  }

  static Configurator::Decode Text(std::string text) {
    return [text = std::move(text)]() -> StatusOr<DeliveredConfig> {
      return DeliveredConfig{.name = "test", .data = {}, .text = text};
    };
  }

  Status Wait(const std::function<void(Configurator::Done)>& begin) {
    std::optional<Status> result;
    begin([&result](const Status& status) { result = status; });
    EXPECT_TRUE(RunUntil(loop_, [&result] { return result.has_value(); }));
    return result.value_or(Unavailable("no answer"));
  }
  // Called on the dump's thread.
  void Note(int& count) {
    const std::lock_guard lock(mutex_);
    ++count;
    dumped_.notify_all();
  }
  Status Deliver(const std::string& text) {
    return Wait([&](Configurator::Done done) {
      configurator().Deliver("test", Text(text), std::move(done));
    });
  }
  Status Check(const std::string& text) {
    return Wait([&](const Configurator::Done& done) {
      configurator().Check(
          "test", Text(text),
          [done](const StatusOr<Configurator::Preview>& preview) { done(preview.status()); });
    });
  }
  // Opens the gate before which a reading waits, and waits until its thread has ended; the loop has
  // yet to take the result.
  static bool LetRead(Gate& gate) {
    const auto reads = [] {
      for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        if (TextOf(thread.path() / "comm") == "config\n") return true;
      }
      return false;
    };
    if (!Eventually(reads)) return false;
    gate.promise.set_value();
    return Eventually([&reads] { return !reads(); });
  }

  // The refusal by a check and by a delivery, which must be equal.
  std::string Refusal(const std::string& text) {
    const Status checked = Check(text);
    const Status delivered = Deliver(text);
    EXPECT_EQ(Describe(checked), Describe(delivered)) << text;
    return std::string(Message(delivered));
  }

  TempDir directory_;
  EventLoop loop_;
  ManualClock clock_;
  test::FakePolicyHost host_;
  std::mutex mutex_;
  std::condition_variable dumped_;
  int opened_ = 0;  // files that the dump opened
  int lines_ = 0;   // lines of the dump in the log
  std::unique_ptr<dump::Dumper> dumper_ =
      *dump::Dumper::Create({.open =
                                 [this](const dump::OutputPlace& place) {
                                   Note(opened_);
                                   return dump::OutputFile::Create(place);
                                 }},
                            [this](bool, std::string_view) { Note(lines_); });
  std::vector<std::string> saved_;
  Config current_;
  ConfigReader::Options reader_{
      .machine = nullptr, .policies = test::NullAndFirstFit(), .dump_directory = DumpDirectory()};
  Configurator::Options options_{
      .loop = loop_, .clock = clock_, .reader = nullptr, .host = host_, .dumper = *dumper_};
  std::unique_ptr<Configurator> configurator_;
};

// Configurations of an earlier run that could not be read in time.

TEST_F(ConfiguratorTest, WhatComesLateIsInForceAndKept) {
  configurator().Restore({.name = "agent", .data = {}, .text = "logger: {Level: warn}"});
  EXPECT_TRUE(RunUntil(loop_, [this] { return configurator().source() == "agent"; }));
  EXPECT_EQ(configurator().current().logger.level, "warn");
}

TEST_F(ConfiguratorTest, WhatComesLateDoesNotReplaceWhatWasDelivered) {
  Gate gate;
  bool delivered = false;
  // The first configuration is still being read when the other one comes.
  configurator().Deliver("test", gate.Behind("test", "logger: {Level: error}"),
                         [&delivered](const Status& status) { delivered = status.ok(); });
  configurator().Restore({.name = "agent", .data = {}, .text = "logger: {Level: warn}"});
  gate.promise.set_value();
  EXPECT_TRUE(RunUntil(loop_, [&] { return delivered; }));
  EXPECT_EQ(Deliver("logger: {Level: error}"), OkStatus()) << "after both";
  EXPECT_EQ(configurator().current().logger.level, "error");
  configurator_.reset();
  EXPECT_THAT(saved_, testing::Each(testing::HasSubstr("error")));
}

// A refusal leaves the former configuration in force.
TEST_F(ConfiguratorTest, WhatComesLateReplacesWhatWasRefused) {
  EXPECT_NE(Deliver("logger: ["), OkStatus());
  configurator().Restore({.name = "agent", .data = {}, .text = "logger: {Level: warn}"});
  EXPECT_TRUE(RunUntil(loop_, [this] { return configurator().source() == "agent"; }));
}

// External changes and their time.

TEST_F(ConfiguratorTest, ARefusedConfigurationTouchesNoFile) {
  current_.dump.file = DumpFile("old");
  std::filesystem::create_directory(DumpDirectory());
  std::ofstream(DumpFile("old")) << "old";
  std::ofstream(DumpFile("new")) << "new";
  std::ofstream(DumpFile("recording")) << "recording";
  host_.refusal = ResourceExhausted("no room");
  EXPECT_THAT(Refusal(fmt::format("policy: {{Active: first-fit}}\n"
                                  "dump: {{File: {}, Config: 'record:{}'}}\n",
                                  DumpFile("new"), DumpFile("recording"))),
              HasSubstr("no room"));
  EXPECT_TRUE(dumper_->Close(kPatience));
  EXPECT_EQ(TextOf(DumpFile("old")), "old");
  EXPECT_EQ(TextOf(DumpFile("new")), "new");
  EXPECT_EQ(TextOf(DumpFile("recording")), "recording");
  EXPECT_EQ(configurator().current().dump.file, DumpFile("old"));
}

TEST_F(ConfiguratorTest, TellsWhatCameIntoForceAndWhatWasRefused) {
  int changed = 0;
  int refused = 0;
  options_.changed = [&changed](const Configurator&) { ++changed; };
  options_.refused = [&refused] { ++refused; };
  EXPECT_TRUE(Deliver("policy: {Active: first-fit}").ok());
  EXPECT_EQ(std::pair(changed, refused), std::pair(1, 0));
  EXPECT_FALSE(Deliver("policy: {Actve: first-fit}").ok());
  EXPECT_EQ(std::pair(changed, refused), std::pair(1, 1));
  // A check changes nothing, so a refusal is not counted.
  EXPECT_FALSE(Check("policy: {Actve: first-fit}").ok());
  EXPECT_EQ(std::pair(changed, refused), std::pair(1, 1));
}

TEST_F(ConfiguratorTest, FilesAreOpenedOnceThePolicyHasChanged) {
  // A dump of calls starts a thread, which handles tasks in order.
  auto calls = dump::Dumper::Read({.specs = {"reset,name:.*"}});
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_TRUE(dumper_->Reconfigure(*std::move(calls)).ok());
  bool early = false;
  host_.at_change = [&] {
    dump::CallRef call;
    call.path = "/runtime.v1.RuntimeService/Version";
    dumper_->OnEnd(call, 0, "");
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(dumped_.wait_for(lock, kPatience, [this] { return lines_ > 0 || opened_ > 0; }));
    early = opened_ > 0;
  };
  EXPECT_EQ(Message(Deliver(fmt::format("policy: {{Active: first-fit}}\ndump: {{File: {}}}",
                                        DumpFile("calls")))),
            "");
  EXPECT_FALSE(early);
  EXPECT_TRUE(dumper_->Close(kPatience));
  EXPECT_TRUE(std::filesystem::exists(DumpFile("calls")));
}

TEST_F(ConfiguratorTest, WhatIsDeliveredNamesFilesInOneDirectoryOnly) {
  const std::string precious = PathOf("precious");
  std::ofstream(precious) << "precious";
  std::filesystem::create_directory(DumpDirectory());
  std::filesystem::create_symlink(precious, DumpFile("link"));
  for (const std::string& file :
       {precious, DumpFile("../precious"), DumpFile("sub/file"), std::string("precious")}) {
    EXPECT_THAT(Refusal(fmt::format("dump: {{File: {}}}", file)), HasSubstr("-dump-dir"));
    EXPECT_THAT(Refusal(fmt::format("dump: {{Config: 'record:{}'}}", file)),
                HasSubstr("-dump-dir"));
  }
  EXPECT_THAT(Refusal(fmt::format("dump: {{File: {}}}", DumpFile("link"))),
              HasSubstr("symbolic link"));
  EXPECT_TRUE(dumper_->Close(kPatience));
  EXPECT_EQ(TextOf(precious), "precious");
}

TEST_F(ConfiguratorTest, TheDaemonsOwnFileAndFlagsNameAnyFile) {
  Config own;
  own.dump.file = PathOf("own");
  EXPECT_TRUE(Wait([&](Configurator::Done done) {
                configurator().Reload(
                    "own.yaml", [own] { return own; }, std::move(done));
              }).ok());
  EXPECT_EQ(configurator().source(), "own.yaml");
  configurator_.reset();
  ASSERT_TRUE(reader_.overrides.Set("dump-file", PathOf("flag")).ok());
  EXPECT_TRUE(Deliver("dump: {Config: 'name:.*', File: /else}").ok());
  EXPECT_TRUE(dumper_->Close(kPatience));
  EXPECT_TRUE(std::filesystem::exists(PathOf("own")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("flag")));
}

TEST_F(ConfiguratorTest, WhatIsDeliveredLeavesHowNriPluginsAreServed) {
  Config own;
  own.nri.strikes = 7;
  EXPECT_TRUE(Wait([&](Configurator::Done done) {
                configurator().Reload(
                    "own.yaml", [own] { return own; }, std::move(done));
              }).ok());
  EXPECT_EQ(configurator().current().nri, own.nri);
  EXPECT_TRUE(Deliver("logger: {Level: warn}").ok());
  EXPECT_TRUE(Deliver("nri: {Host: {Strikes: 9}}").ok());
  EXPECT_EQ(configurator().current().nri, own.nri);
}

// A configuration that was delivered says nothing of hook servers: those of the file count, as it
// was read last.
TEST_F(ConfiguratorTest, WhatIsDeliveredLeavesTheHookServersOfTheFile) {
  reader_.asks_hook_servers = true;
  reader_.hooks.directory = "/started";
  Config own;
  own.hooks.directory = "/reread";
  const auto reload = [&](Configurator::Done done) {
    configurator().Reload(
        "own.yaml", [own] { return own; }, std::move(done));
  };
  ASSERT_EQ(Wait(reload), OkStatus());
  ASSERT_EQ(Deliver("hooks: {Directory: /delivered}"), OkStatus());
  EXPECT_EQ(configurator().current().hooks.directory, "/delivered");
  ASSERT_EQ(Deliver("logger: {Level: warn}"), OkStatus());
  EXPECT_EQ(configurator().current().hooks.directory, "/reread");
  configurator().SetOffline(*CpuSet::Parse("3"));
  ASSERT_EQ(Deliver("logger: {Level: error}"), OkStatus());
  EXPECT_EQ(configurator().current().hooks.directory, "/reread");
}

// A check and a delivery.

TEST_F(ConfiguratorTest, ACheckAndADeliveryAgree) {
  std::filesystem::create_directory(DumpDirectory());
  ASSERT_EQ(::mkfifo(DumpFile("pipe").c_str(), 0600), 0);
  for (const std::string& text :
       {std::string("polcy: {}"), std::string("policy: {Active: frst-fit}"),
        std::string("policy: {Active: first-fit, AvailableResources: {CPU: 'cpuset:99'}}"),
        std::string("policy: {Active: null, ReservedResources: {CPU: 5}}"),
        std::string("dump: {Config: 'a:b:c'}"), std::string("logger: {Level: loud}"),
        fmt::format("dump: {{File: {}}}", DumpFile("pipe")),
        fmt::format("dump: {{File: {0}, Config: 'record:{0}'}}", DumpFile("same"))}) {
    EXPECT_NE(Refusal(text), "") << text;
  }
  EXPECT_EQ(Refusal("policy: {Active: first-fit}"), "");
  EXPECT_EQ(host_.changes, 1);
  options_.forced = true;
  configurator_.reset();
  EXPECT_THAT(Refusal("policy: {Active: first-fit}"), HasSubstr("-force-config"));
}

TEST_F(ConfiguratorTest, AnotherPolicyThanTheFlagsIsRefused) {
  ASSERT_TRUE(reader_.overrides.Set("policy", "first-fit").ok());
  current_.policy.active = "first-fit";
  const std::string refusal = Refusal("logger: {Level: warn}\npolicy:\n  Active: null");
  EXPECT_THAT(refusal, AllOf(HasSubstr("test:3: policy.Active"), HasSubstr("-policy first-fit"),
                             HasSubstr("remove")));
  EXPECT_THAT(Refusal("policy null"), AllOf(HasSubstr("test:1"), HasSubstr("-policy first-fit")));
  EXPECT_EQ(Refusal("policy: {Active: first-fit}"), "");
  EXPECT_EQ(Refusal("logger: {Level: warn}"), "") << "does not choose a policy";
  EXPECT_EQ(configurator().current().policy.active, "first-fit");
}

// Slow readers and disks.

TEST_F(ConfiguratorTest, ReadsOffTheLoopAndInOrder) {
  Gate gate;
  std::vector<std::string> answered;
  const auto answer = [&answered](const std::string& name) {
    return [&answered, name](const Status& status) {
      EXPECT_TRUE(status.ok());
      answered.push_back(name);
    };
  };
  configurator().Deliver("slow", gate.Behind("slow", "logger: {Level: warn}"), answer("slow"));
  configurator().Deliver("fast", Text("logger: {Level: info}"), answer("fast"));
  int turns = 0;
  EXPECT_TRUE(RunUntil(loop_, [&] { return ++turns > 20; }));
  EXPECT_THAT(answered, IsEmpty());
  gate.promise.set_value();
  EXPECT_TRUE(RunUntil(loop_, [&] { return answered.size() == 2; }));
  EXPECT_THAT(answered, ElementsAre("slow", "fast"));
  EXPECT_EQ(configurator().current().logger.level, "info");
}

TEST_F(ConfiguratorTest, AReadingThatHangsIsRefusedAndHoldsNothingUp) {
  Gate gate;
  std::optional<Status> hung;
  configurator().Deliver("test", gate.Behind("late", "logger: {Level: warn}"),
                         [&hung](const Status& status) { hung = status; });
  clock_.Advance(options_.reading_time);
  ASSERT_TRUE(hung.has_value());
  EXPECT_EQ(hung->code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Deliver("logger: {Level: warn}").code(), StatusCode::kUnavailable);
  ASSERT_TRUE(LetRead(gate));
  EXPECT_EQ(Deliver("logger: {Level: error}"), OkStatus());
  EXPECT_EQ(configurator().current().logger.level, "error") << "what came late is forgotten";
}

TEST_F(ConfiguratorTest, WhatHasBeenReadAtTheDeadlineIsTaken) {
  Gate gate;
  std::optional<Status> result;
  configurator().Deliver("test", gate.Behind("test", "logger: {Level: error}"),
                         [&result](const Status& status) { result = status; });
  ASSERT_TRUE(LetRead(gate));
  clock_.Advance(options_.reading_time);
  ASSERT_TRUE(RunUntil(loop_, [&result] { return result.has_value(); }));
  EXPECT_EQ(*result, OkStatus());
  EXPECT_EQ(configurator().current().logger.level, "error");
}

TEST_F(ConfiguratorTest, ADiskThatHangsHoldsNothingUpAndKeepsTheLatest) {
  const auto gate = std::make_shared<Gate>();
  options_.save = [this, gate](const std::string&, const DeliveredConfig& source) {
    gate->opened.wait();
    const std::lock_guard lock(mutex_);
    saved_.push_back(source.text.value_or(""));
    return OkStatus();
  };
  const std::string levels[] = {"debug", "info", "warn", "error"};
  const auto text = [](const std::string& level) { return "logger: {Level: " + level + "}"; };
  for (const std::string& level : levels)
    EXPECT_TRUE(Deliver(text(level)).ok());
  gate->promise.set_value();
  configurator_.reset();
  EXPECT_THAT(saved_, ElementsAre(text("debug"), text("error")));
}

// The disk refuses the first one only after the second one is in force.
TEST_F(ConfiguratorTest, AFailureToStoreIsNotThatOfALaterConfiguration) {
  const auto gate = std::make_shared<Gate>();
  options_.save = [this, gate](const std::string&, const DeliveredConfig& source) {
    gate->opened.wait();
    const std::lock_guard lock(mutex_);
    saved_.push_back(source.text.value_or(""));
    return saved_.size() == 1 ? Unavailable("no space left") : OkStatus();
  };
  ASSERT_EQ(Deliver("logger: {Level: warn}"), OkStatus());
  ASSERT_EQ(Deliver("logger: {Level: error}"), OkStatus());
  gate->promise.set_value();
  // The second one is stored after the result of the first one was posted.
  ASSERT_TRUE(RunUntil(loop_, [this] {
    const std::lock_guard lock(mutex_);
    return saved_.size() == 2;
  }));
  int turns = 0;
  ASSERT_TRUE(RunUntil(loop_, [&turns] { return ++turns > 2; }));
  EXPECT_EQ(configurator().stored(), OkStatus());
  EXPECT_THAT(saved_, ElementsAre(HasSubstr("warn"), HasSubstr("error")));
}

TEST_F(ConfiguratorTest, AFailureToStoreTheOneInForceIsTold) {
  options_.save = [](const std::string&, const DeliveredConfig&) {
    return Unavailable("no space left");
  };
  ASSERT_EQ(Deliver("logger: {Level: warn}"), OkStatus());
  EXPECT_TRUE(RunUntil(loop_, [this] { return !configurator().stored().ok(); }));
}

TEST_F(ConfiguratorTest, WhoWantsToKnowWaitsUntilItIsStoredButNotForADiskThatHangs) {
  const auto gate = std::make_shared<Gate>();
  options_.save = [gate](const std::string&, const DeliveredConfig&) {
    gate->opened.wait();
    return OkStatus();
  };
  ASSERT_EQ(Deliver("logger: {Level: warn}"), OkStatus());
  std::vector<Status> told;
  configurator().WhenStored([&told](const Status& stored) { told.push_back(stored); });
  EXPECT_THAT(told, IsEmpty());
  clock_.Advance(seconds(5));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(configurator().stored(), told[0]);
  gate->promise.set_value();
  EXPECT_TRUE(RunUntil(loop_, [this] { return configurator().stored().ok(); }));
  configurator().WhenStored([&told](const Status& stored) { told.push_back(stored); });
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1], OkStatus());
}

TEST_F(ConfiguratorTest, TheEndDoesNotWaitForADiskThatHangs) {
  const auto gate = std::make_shared<Gate>();
  options_.save = [gate](const std::string&, const DeliveredConfig&) {
    gate->opened.wait();
    return OkStatus();
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(Deliver("logger: {Level: warn}").ok());
  const auto begin = std::chrono::steady_clock::now();
  configurator_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
  gate->promise.set_value();
}

TEST_F(ConfiguratorTest, HoldsOnlySoManyAtOnce) {
  Gate gate;
  int answers = 0;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    configurator().Deliver("test", gate.Behind("test", ""), [&](const Status& status) {
      ++answers;
      if (status.code() == StatusCode::kResourceExhausted) ++refused;
    });
  }
  EXPECT_GE(refused, 90);
  gate.promise.set_value();
  EXPECT_TRUE(RunUntil(loop_, [&] { return answers == 100; }));
}

TEST_F(ConfiguratorTest, LettingGoLeavesNothingToOthers) {
  options_.forced = true;
  current_.policy.active = "first-fit";
  current_.hooks.directory = "/etc/hooks";
  int shown = 0;
  options_.changed = [&shown](const Configurator& now) {
    ++shown;
    EXPECT_EQ(now.current().policy.active, "null");
    EXPECT_EQ(now.current().hooks.directory, "");
  };
  const auto let_go = [this](Configurator::Done done) { configurator().LetGo(std::move(done)); };
  EXPECT_EQ(Wait(let_go), OkStatus());
  EXPECT_EQ(shown, 1);
  EXPECT_EQ(host_.changes, 1);
  EXPECT_THAT(saved_, IsEmpty()) << "the next start has the configuration of before";
  const auto reload = [this](Configurator::Done done) {
    configurator().Reload(
        "file", [] { return Config{}; }, std::move(done));
  };
  const Status refused = Wait(reload);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("uninstall"));
  EXPECT_EQ(Wait(let_go), OkStatus()) << "again, for what could not be done";
}

// The configuration that was delivered before it is not in force yet when it is asked for.
TEST_F(ConfiguratorTest, LettingGoKeepsTheRestOfTheConfigurationBeforeIt) {
  current_.policy.active = "first-fit";
  Gate gate;
  bool delivered = false;
  std::optional<Status> let_go;
  configurator().Deliver("test", gate.Behind("test", "logger: {Level: error}"),
                         [&delivered](const Status& status) { delivered = status.ok(); });
  configurator().LetGo([&let_go](const Status& status) { let_go = status; });
  gate.promise.set_value();
  ASSERT_TRUE(RunUntil(loop_, [&] { return let_go.has_value(); }));
  EXPECT_EQ(*let_go, OkStatus());
  EXPECT_TRUE(delivered);
  EXPECT_EQ(configurator().current().policy.active, "null");
  EXPECT_EQ(configurator().current().logger.level, "error");
}

// SIGHUP while the configuration of the agent is being read: the agent's is in force, and the file
// counts only until then.
TEST_F(ConfiguratorTest, AFileReplacesNoConfigurationThatWasDeliveredBeforeIt) {
  Config own;
  own.logger.level = "warn";
  const auto load = [own] { return own; };
  ASSERT_EQ(Wait([&](Configurator::Done done) {
              configurator().Reload("own.yaml", load, std::move(done));
            }),
            OkStatus());
  Gate gate;
  bool delivered = false;
  configurator().Deliver("agent", gate.Behind("agent", "logger: {Level: error}"),
                         [&delivered](const Status& status) { delivered = status.ok(); });
  std::optional<Status> reloaded;
  configurator().Reload("own.yaml", load, [&](const Status& status) { reloaded = status; });
  gate.promise.set_value();
  ASSERT_TRUE(RunUntil(loop_, [&] { return reloaded.has_value(); }));
  EXPECT_EQ(*reloaded, OkStatus());
  EXPECT_TRUE(delivered);
  EXPECT_EQ(configurator().source(), "agent");
  EXPECT_EQ(configurator().current().logger.level, "error");
  EXPECT_FALSE(configurator().refusal().has_value());
}

TEST_F(ConfiguratorTest, LettingGoThatFailsChangesNothing) {
  current_.policy.active = "first-fit";
  host_.refusal = Internal("the runtime refuses");
  const auto let_go = [this](Configurator::Done done) { configurator().LetGo(std::move(done)); };
  EXPECT_EQ(Wait(let_go).code(), StatusCode::kInternal);
  EXPECT_EQ(configurator().current().policy.active, "first-fit");
  host_.refusal = OkStatus();
  EXPECT_EQ(Deliver("policy: {Active: first-fit}"), OkStatus());
}

TEST_F(ConfiguratorTest, OneBudgetForAllKeysOfADelivery) {
  const auto deliver = [this](std::map<std::string, std::string> data) {
    return std::string(Message(Wait([&](Configurator::Done done) {
      configurator().Deliver(
          "test",
          [data]() -> StatusOr<DeliveredConfig> {
            return DeliveredConfig{.name = "test", .data = data, .text = std::nullopt};
          },
          std::move(done));
    })));
  };
  EXPECT_THAT(deliver({{"policy", std::string(600'000, ' ')}, {"dump", std::string(600'000, ' ')}}),
              HasSubstr("bytes"));
  std::map<std::string, std::string> keys;
  for (int i = 0; i < 1000; ++i)
    keys[fmt::format("policy.x{}", i)] = "1";
  EXPECT_THAT(deliver(keys), HasSubstr("keys"));
  EXPECT_EQ(deliver({{"logger", "Level: warn"}}), "");
}

// Exclusive CPUs.

class LossesTest : public ConfiguratorTest {
 protected:
  // Places `containers` containers, each of which will lose its one exclusive CPU.
  void Lose(int containers) {
    for (int i = 0; i < containers; ++i) {
      ResourceManager::Move move;
      move.container = fmt::format("default/dsp-{}/main", i);
      move.from.cpus = move.from.exclusive = CpuSet{i};
      move.to.cpus = CpuSet{0, 1, 2, 3};
      host_.moves.push_back(move);
    }
  }
  Status Set(Configurator::Losses losses) {
    return Wait([&](Configurator::Done done) {
      configurator().Deliver("test", Text("policy: {Active: first-fit}"), std::move(done), losses);
    });
  }
};

TEST_F(LossesTest, AreRefusedByNameUnlessTheyAreTaken) {
  Lose(2);
  const Status refused = Set(Configurator::Losses::kRefuse);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("default/dsp-0/main (CPU 0, exclusive -> CPUs 0-3, shared), "
                              "default/dsp-1/main"),
                    HasSubstr("-force")));
  EXPECT_EQ(host_.changes, 0);
  EXPECT_EQ(configurator().losses(), "");
  EXPECT_EQ(Set(Configurator::Losses::kTake), OkStatus());
  EXPECT_EQ(host_.changes, 1);
  EXPECT_THAT(configurator().losses(), HasSubstr("default/dsp-1/main"));
}

TEST_F(LossesTest, AMoveOfExclusiveCpusIsNone) {
  Lose(1);
  host_.moves.front().to.cpus = host_.moves.front().to.exclusive = CpuSet{3};
  EXPECT_EQ(Set(Configurator::Losses::kRefuse), OkStatus());
  EXPECT_EQ(configurator().losses(), "");
}

TEST_F(LossesTest, ManyAreCounted) {
  Lose(500);
  const std::string refusal(Message(Set(Configurator::Losses::kRefuse)));
  EXPECT_THAT(refusal, HasSubstr(" and 495 more"));
  EXPECT_LT(refusal.size(), 1000U);
}

TEST_F(ConfiguratorTest, CpusThatGoOfflineAreLeftOutOnce) {
  ASSERT_TRUE(Deliver("policy: {Active: first-fit, ReservedResources: {cpu: 'cpuset:0'}}").ok());
  const int changes = host_.changes;
  configurator().SetOffline({});
  EXPECT_EQ(host_.offline_changes, 0);
  configurator().SetOffline({0, 2});
  configurator().SetOffline({0, 2});
  EXPECT_TRUE(RunUntil(loop_, [&] { return host_.offline_changes == 1; }));
  EXPECT_EQ(host_.offline.cpus, (CpuSet{0, 2}));
  EXPECT_EQ(host_.offline.reserved, CpuSet{1}) << "a reservation does not become empty";
  configurator().SetOffline({0, 2});
  ASSERT_TRUE(Deliver("policy: {Active: first-fit}").ok());
  EXPECT_EQ(host_.offline_changes, 1);
  EXPECT_EQ(host_.changes, changes + 1);
  configurator().SetOffline({});
  EXPECT_TRUE(RunUntil(loop_, [&] { return host_.offline_changes == 2; }));
  EXPECT_EQ(host_.offline.cpus, CpuSet());
}

TEST_F(ConfiguratorTest, WhatFailsForOfflineCpusIsTriedAgain) {
  ASSERT_TRUE(Deliver("policy: {Active: first-fit, AvailableResources: {cpu: 'cpuset:2-3'}}").ok());
  // Without a CPU there is no policy.
  configurator().SetOffline({2, 3});
  EXPECT_TRUE(RunUntil(loop_, [&, looks = 0]() mutable {
    configurator().SetOffline({2, 3});
    return ++looks == 30;
  }));
  EXPECT_EQ(host_.offline_changes, 0);
  host_.refusal = FailedPrecondition("not now");
  EXPECT_TRUE(RunUntil(loop_, [&] {
    configurator().SetOffline({3});
    return host_.offline_changes >= 3;
  }));
  EXPECT_EQ(host_.offline.cpus, CpuSet());
  host_.refusal = OkStatus();
  EXPECT_TRUE(RunUntil(loop_, [&] {
    configurator().SetOffline({3});
    return !host_.offline.cpus.empty();
  }));
  EXPECT_EQ(host_.offline.cpus, CpuSet{3});
}

}  // namespace
}  // namespace resmgr
