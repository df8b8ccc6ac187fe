// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/rules.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::dump {
namespace {

using ::testing::HasSubstr;

Rules Parsed(const std::vector<std::string>& specs) {
  auto rules = Rules::Parse(specs);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *std::move(rules) : Rules();
}

std::string ErrorOf(const std::string& spec) {
  const auto rules = Rules::Parse({spec});
  if (rules.ok()) return "";
  EXPECT_EQ(rules.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(rules.status()));
}

struct Row {
  std::vector<std::string> specs;
  std::string_view method;
  Target target;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string trace(row.method);
    for (const std::string& spec : row.specs)
      trace += " -dump '" + spec + "'";
    EXPECT_EQ(Parsed(row.specs).Lookup(row.method), row.target) << trace;
  }
}

TEST(RulesTest, BuiltInRulesComeFirst) {
  Check({
      {{}, "CreateContainer", Target::kFull},
      {{}, "PullImage", Target::kFull},
      {{}, "Version", Target::kOff},
      {{}, "ListContainers", Target::kOff},
      {{}, "PodSandboxStatus", Target::kOff},
      {{}, "ImageFsInfo", Target::kOff},
      {{}, "ReopenContainerLog", Target::kOff},
      {{"name:Version"}, "Version", Target::kName},
      {{"name:Version"}, "CreateContainer", Target::kFull},
      {{"name:Version"}, "ListImages", Target::kOff},
  });
}

TEST(RulesTest, TargetsHaveTwoNames) {
  Check({
      {{"reset,off:M"}, "M", Target::kOff},
      {{"reset,suppress:M"}, "M", Target::kOff},
      {{"reset,name:M"}, "M", Target::kName},
      {{"reset,short:M"}, "M", Target::kName},
      {{"reset,full:M"}, "M", Target::kFull},
      {{"reset,long:M"}, "M", Target::kFull},
      {{"reset,count:M"}, "M", Target::kCount},
  });
}

TEST(RulesTest, TargetIsFullUnlessSaidOtherwise) {
  Check({{{"reset,M"}, "M", Target::kFull}, {{"reset,M,name:N"}, "M", Target::kFull}});
}

TEST(RulesTest, TargetSticksToTheItemsThatFollow) {
  Check({
      {{"reset,name:A,B,count:C,D"}, "B", Target::kName},
      {{"reset,name:A,B,count:C,D"}, "D", Target::kCount},
      {{"reset,name:A,reset,B"}, "B", Target::kName},
      {{"reset,name:A,on,B"}, "B", Target::kName},
      {{"reset,name:,B"}, "B", Target::kName},
      {{"off:.*,((Create)|(Start)).*"}, "CreateContainer", Target::kOff},
  });
}

TEST(RulesTest, EachSpecificationStartsAgainWithFull) {
  Check({{{"reset,name:A", "B"}, "B", Target::kFull}});
}

TEST(RulesTest, SpecificationsAddUp) {
  Check({
      {{"reset", "name:A", "count:B"}, "A", Target::kName},
      {{"reset", "name:A", "count:B"}, "B", Target::kCount},
      {{"reset", "name:A", "full:A"}, "A", Target::kFull},
      {{"full:A", "reset,name:B"}, "A", Target::kOff},
  });
}

TEST(RulesTest, ResetForgetsAllRules) {
  Check({
      {{"reset"}, "CreateContainer", Target::kOff},
      {{"full:Version,reset"}, "Version", Target::kOff},
      {{"reset,full:.*"}, "ListContainers", Target::kFull},
      {{"reset,full:.*"}, "Version", Target::kFull},
  });
}

TEST(RulesTest, BareSwitchWordsAreKeywordsWithoutEffect) {
  for (const std::string word : {"enable", "on", "disable", "off"}) {
    Check({
        {{word}, "CreateContainer", Target::kFull},
        {{"reset,full:.*," + word}, "Version", Target::kFull},
        {{"reset," + word}, word, Target::kOff},
    });
  }
}

TEST(RulesTest, KeywordBehindAColonIsAMethod) {
  Check({{{"reset,name:reset"}, "reset", Target::kName}, {{"reset,name:on"}, "on", Target::kName}});
}

TEST(RulesTest, ExactNameBeatsWildcardBeatsPattern) {
  Check({
      {{"reset,full:Version,off:*,name:Ver.*"}, "Version", Target::kFull},
      {{"reset,full:Version,off:*,name:Ver.*"}, "Versions", Target::kOff},
      {{"reset,count:*,name:.*"}, "Status", Target::kCount},
      {{"reset,name:Status.*"}, "Version", Target::kOff},
  });
}

TEST(RulesTest, LastMatchingPatternWins) {
  Check({
      {{"reset,full:.*,name:Create.*,count:.*Container"}, "CreateContainer", Target::kCount},
      {{"reset,full:.*,name:Create.*,count:.*Container"}, "CreateImage", Target::kName},
      {{"reset,name:Create.*,full:.*"}, "CreateContainer", Target::kFull},
  });
}

TEST(RulesTest, PatternsMatchAnywhere) {
  Check({
      {{"reset,name:(ontain)"}, "CreateContainer", Target::kName},
      {{"reset,name:Contain.r"}, "ListContainers", Target::kName},
      {{"reset,name:[LS]t?i"}, "ListImages", Target::kName},
      {{"reset,name:^Container.*"}, "ListContainers", Target::kOff},
      {{"reset,name:(?i)version"}, "Version", Target::kName},
  });
}

TEST(RulesTest, OnlyTheSpecialCharactersMakeAPattern) {
  Check({
      {{"reset,name:Container"}, "CreateContainer", Target::kOff},
      {{"reset,name:^Version$"}, "Version", Target::kOff},
      {{"reset,name:^Version$"}, "^Version$", Target::kName},
  });
}

TEST(RulesTest, SpacesAroundItemsDoNotMatter) {
  Check({{{"reset, name:A , B"}, "A", Target::kName}, {{"reset, name:A , B"}, "B", Target::kName}});
}

TEST(RulesTest, EmptyItemsAreNothing) {
  Check({{{"reset,,name:A,"}, "A", Target::kName}, {{""}, "CreateContainer", Target::kFull}});
  EXPECT_FALSE(Parsed({""}).customized());
}

TEST(RulesTest, TwoColonsAreAnError) {
  EXPECT_THAT(ErrorOf("reset,full:A:B"), HasSubstr("'full:A:B'"));
  EXPECT_THAT(ErrorOf("full:[[:alpha:]]"), HasSubstr("colon"));
}

TEST(RulesTest, CommaAlwaysSeparates) {
  EXPECT_THAT(ErrorOf("full:A{1,2}|(B"), HasSubstr("'2}|(B'"));
  Check({{{"reset,name:A{1,2}"}, "2}", Target::kName}});
}

TEST(RulesTest, WrongItemsAreQuoted) {
  EXPECT_THAT(ErrorOf("verbose:A"),
              HasSubstr("unknown target 'verbose' (off, short, full, count or record)"));
  EXPECT_THAT(ErrorOf(":A"), HasSubstr("unknown target ''"));
  EXPECT_THAT(ErrorOf("Full:A"), HasSubstr("unknown target 'Full'"));
  EXPECT_THAT(ErrorOf("full:(Create"), HasSubstr("'(Create'"));
  EXPECT_THAT(ErrorOf("full:*Container"), HasSubstr("'*Container'"));
}

TEST(RulesTest, RecordNamesAFileAndLeavesTheRestAlone) {
  const Rules rules = Parsed({"reset,name:A,record:/tmp/r.jsonl,B"});
  EXPECT_EQ(rules.record_file(), "/tmp/r.jsonl");
  EXPECT_EQ(rules.Lookup("B"), Target::kName);
  EXPECT_EQ(Parsed({"record:/tmp/r.jsonl,reset"}).record_file(), "/tmp/r.jsonl");
  EXPECT_EQ(Parsed({"full:.*"}).record_file(), "");
}

TEST(RulesTest, RecordTakesOneFile) {
  EXPECT_THAT(ErrorOf("record:"), HasSubstr("needs a file"));
  EXPECT_THAT(ErrorOf("record:a,record:b"), HasSubstr("two recordings"));
  EXPECT_EQ(Parsed({"record:a", "record:a"}).record_file(), "a");
}

TEST(RulesTest, RecordingAloneIsNoWishForADump) {
  EXPECT_FALSE(Parsed({}).customized());
  EXPECT_FALSE(Parsed({"record:a"}).customized());
  EXPECT_TRUE(Parsed({"record:a,full:.*"}).customized());
  EXPECT_TRUE(Parsed({"on"}).customized());
  EXPECT_TRUE(Parsed({"reset"}).customized());
}

}  // namespace
}  // namespace resmgr::dump
