// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    line_.Group("Configuration");
    line_.Flag("config", "FILE", "Where the configuration is.", &config_);
    line_.Flag("policy", "NAME", "The policy.", &policy_);
    line_.Flag("dump", "SPEC", "What to dump.", &dump_);
    line_.Choice("level", {"info", "debug"}, "How much to log.", &level_);
    line_.Group("Actions");
    line_.Flag("count", "N", "How often.", &count_);
    line_.Flag("check", "Check and exit.", &check_);
  }

  Status Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "program");
    return line_.Parse(static_cast<int>(arguments.size()), arguments.data());
  }
  std::string Error(std::vector<const char*> arguments) {
    const Status status = Parse(std::move(arguments));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(Message(status));
  }

  std::string config_ = "/etc/default.yaml";
  std::optional<std::string> policy_;
  std::vector<std::string> dump_;
  std::string level_ = "info";
  int64_t count_ = 3;
  bool check_ = false;
  CommandLine line_{"program", "Shows how flags work."};
};

TEST_F(CommandLineTest, KeepsDefaultsWithoutArguments) {
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(config_, "/etc/default.yaml");
  EXPECT_EQ(policy_, std::nullopt);
  EXPECT_EQ(count_, 3);
}

TEST_F(CommandLineTest, SurvivesAnEmptyArgv) {
  EXPECT_TRUE(line_.Parse(0, nullptr).ok());
}

TEST_F(CommandLineTest, TakesOneOrTwoDashesAndBothValueForms) {
  ASSERT_TRUE(
      Parse({"-config", "a", "--policy=static", "--level", "debug", "-count=-7", "-check"}).ok());
  EXPECT_EQ(config_, "a");
  EXPECT_EQ(policy_, "static");
  EXPECT_EQ(level_, "debug");
  EXPECT_EQ(count_, -7);
  EXPECT_TRUE(check_);
}

TEST_F(CommandLineTest, BoolTakesItsValueOnlyBehindTheEqualSign) {
  ASSERT_TRUE(Parse({"-check", "-check=false"}).ok());
  EXPECT_FALSE(check_);
  EXPECT_THAT(Error({"-check", "false"}), HasSubstr("write -check=false"));
}

TEST_F(CommandLineTest, ListsCollectAndOthersKeepTheLastValue) {
  ASSERT_TRUE(Parse({"-dump", "a,b", "-config=x", "-dump=c", "-config=y"}).ok());
  EXPECT_THAT(dump_, ElementsAre("a,b", "c"));
  EXPECT_EQ(config_, "y");
}

TEST_F(CommandLineTest, ValueMayBeADashOrEmptyOrHoldAnEqualSign) {
  ASSERT_TRUE(Parse({"-config", "-", "-policy=", "-dump", "CPU=1"}).ok());
  EXPECT_EQ(config_, "-");
  EXPECT_EQ(policy_, "");
  EXPECT_THAT(dump_, ElementsAre("CPU=1"));
}

TEST_F(CommandLineTest, ValueThatLooksLikeAnUnknownFlagIsTaken) {
  ASSERT_TRUE(Parse({"-count", "-5"}).ok());
  EXPECT_EQ(count_, -5);
}

TEST_F(CommandLineTest, RefusesToSwallowTheNextFlagAsAValue) {
  EXPECT_THAT(Error({"-config", "-policy", "static"}), HasSubstr("needs a value (FILE)"));
  EXPECT_THAT(Error({"-config", "-policy=static"}), HasSubstr("the flag -policy=static follows"));
}

TEST_F(CommandLineTest, MissingLastValueIsNamed) {
  EXPECT_EQ(Error({"-config"}), "-config: needs a value (FILE)");
}

TEST_F(CommandLineTest, UnknownFlagGetsTheClosestName) {
  EXPECT_EQ(Error({"-polcy", "static"}), "unknown flag -polcy; did you mean -policy?");
  EXPECT_EQ(Error({"--conf=x"}), "unknown flag -conf; did you mean -config?");
  EXPECT_EQ(Error({"-zzz"}), "unknown flag -zzz; -help lists what there is");
  EXPECT_THAT(Error({"-="}), HasSubstr("unknown flag -"));
}

TEST_F(CommandLineTest, WrongValuesNameFlagAndNeed) {
  EXPECT_EQ(Error({"-level", "loud"}), "-level: \"loud\" is not one of info, debug");
  EXPECT_EQ(Error({"-count=many"}), "-count: \"many\" is not a whole number");
  EXPECT_EQ(Error({"-check=perhaps"}), "-check: \"perhaps\" is not true or false");
}

TEST_F(CommandLineTest, RefusesArgumentsThatNobodyWants) {
  EXPECT_THAT(Error({"start"}), HasSubstr("unexpected argument \"start\""));
}

TEST_F(CommandLineTest, CollectsArgumentsAmongFlags) {
  std::vector<std::string> arguments;
  line_.Arguments("COMMAND", &arguments);
  ASSERT_TRUE(Parse({"show", "-check", "-", "--", "-policy"}).ok());
  EXPECT_THAT(arguments, ElementsAre("show", "-", "-policy"));
  EXPECT_TRUE(check_);
  EXPECT_EQ(policy_, std::nullopt);
}

TEST_F(CommandLineTest, OwnParserSeesTheValue) {
  line_.Flag("even", "N", "An even number.", "", [](std::string_view value) -> Status {
    return value == "2" ? OkStatus() : InvalidArgument("{} is odd", value);
  });
  EXPECT_TRUE(Parse({"-even=2"}).ok());
  EXPECT_EQ(Error({"-even", "1"}), "-even: 1 is odd");
}

TEST_F(CommandLineTest, HelpTeachesGroupsDefaultsAndRepetition) {
  const std::string help = line_.Help();
  EXPECT_THAT(help, HasSubstr("Usage: program [FLAG...]\n\nShows how flags work."));
  EXPECT_THAT(help, HasSubstr("\nConfiguration:\n  -config FILE\n"));
  EXPECT_THAT(help, HasSubstr("Default: /etc/default.yaml\n"));
  EXPECT_THAT(help, HasSubstr("What to dump. May be repeated.\n"));
  EXPECT_THAT(help, HasSubstr("\nActions:\n"));
  EXPECT_THAT(help, HasSubstr("  -check\n"));
  EXPECT_THAT(help, HasSubstr("  -level info|debug\n"));
}

TEST_F(CommandLineTest, HelpLinesStayNarrow) {
  std::string words;
  for (int i = 0; i < 60; ++i)
    words += "some words ";
  line_.Flag("long", words, &check_);
  const std::string text = line_.Help();
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 100U);
}

TEST_F(CommandLineTest, HelpStopsTheReading) {
  for (const char* flag : {"-help", "--help", "-h"}) {
    CommandLine line("program", "");
    const char* argv[] = {"program", flag, "-unknown"};
    EXPECT_TRUE(line.Parse(3, argv).ok());
    EXPECT_TRUE(line.help_requested());
  }
  ASSERT_TRUE(Parse({"-check"}).ok());
  EXPECT_FALSE(line_.help_requested());
}

TEST_F(CommandLineTest, OptionsAreSetByNameWithoutDashes) {
  EXPECT_TRUE(line_.SetOption("policy", "static").ok());
  EXPECT_EQ(policy_, "static");
  EXPECT_TRUE(line_.SetOption("check", std::nullopt).ok());
  EXPECT_TRUE(check_);
  EXPECT_EQ(Message(line_.SetOption("config", std::nullopt)), "config: needs a value (FILE)");
  EXPECT_EQ(Message(line_.SetOption("polcy", "x")), "unknown option polcy; did you mean policy?");
}

}  // namespace
}  // namespace resmgr
