// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ExplainCommandTest, TellsWhichStageSetWhat) {
  Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[
        {"field":"cpuset_cpus","key":"","stage":"policy","plugin":""},
        {"field":"environment","key":"A","stage":"nri","plugin":"10-env"},
        {"field":"cpuset_mems","key":"","stage":"policy","plugin":""},
        {"field":"mounts","key":"/data","stage":"nri","plugin":"20-mount"},
        {"field":"environment","key":"B","stage":"nri","plugin":"10-env"}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("set by policy        cpuset_cpus, cpuset_mems\n"));
  EXPECT_THAT(text, HasSubstr("set by nri 10-env    environment A, environment B\n"));
  EXPECT_THAT(text, HasSubstr("set by nri 20-mount  mounts /data\n"));
  container["leftOut"] =
      Reply::array({"plugin \"10-a\" wants to set LinuxSched: the CRI has no field for it"});
  EXPECT_THAT(ExplanationText(Reply::array({container})),
              HasSubstr("left out             plugin \"10-a\" wants to set LinuxSched"));
  container.erase("leftOut");
  container.erase("owners");
  EXPECT_THAT(ExplanationText(Reply::array({container})), Not(HasSubstr("set by")));
}

TEST(ExplainCommandTest, TellsWhyThereIsNoFileOfItsCpus) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[],
      "cpuFile":"none: it has a mount of its own at /run, and the file would be at /run/cri-resmgr"})");
  EXPECT_THAT(ExplanationText(Reply::array({container})),
              HasSubstr("file of its CPUs  none: it has a mount of its own at /run, and"));
}

TEST(ExplainCommandTest, AContainerThatHasDriftedIsNeverInForce) {
  Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "settled":true,"hints":[],"candidates":[],"owners":[],
      "problems":[{"kind":"drift","message":"shop/db/main has drifted: CPUs 0-7","next":"audit"}]})");
  EXPECT_THAT(ExplanationText(Reply::array({container})), HasSubstr("in force          yes\n"));
  container["audit"] = "CPUs 0-7 in its cgroup, not 1-2";
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("in force          no: it has drifted\n"));
  EXPECT_THAT(text, HasSubstr("problem           drift: shop/db/main has drifted: CPUs 0-7; try:"));
  EXPECT_THAT(ExplanationText(Reply::array({container, container})), Not(HasSubstr("  yes  ")));
}

TEST(ExplainCommandTest, TellsWhatMemoryLiesElsewhere) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[],
      "memoryElsewhere":"96 MiB on memory node 1 stays there: cgroup v1 moves no memory"})");
  EXPECT_THAT(ExplanationText(Reply::array({container})),
              HasSubstr("memory elsewhere  96 MiB on memory node 1 stays there: cgroup v1"));
}

TEST(ExplainCommandTest, UnderTheNullPolicyTellsWhatHookServersChanged) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "cpus":"0-3","mems":"","shares":512,"quota":50000,"period":100000,"memoryLimit":0,
      "policy":"null","hints":[],"candidates":[],"owners":[
        {"field":"cpu_shares","key":"","stage":"hooks","plugin":"koordlet.json","value":"512"},
        {"field":"unified","key":"cpu.idle","stage":"hooks","plugin":"koordlet.json","value":"1"},
        {"field":"environment","key":"A","stage":"hooks","plugin":"koordlet.json"}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("shop/db/main\n"));
  EXPECT_THAT(text, HasSubstr("CPUs 0-3, shared; any memory node\n"));
  EXPECT_THAT(text, HasSubstr("CPU shares 512, CPU limit 0.5\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "set by hooks koordlet.json  cpu_shares = 512, unified cpu.idle = 1, environment A\n"));
  EXPECT_THAT(text, Not(HasSubstr("asks for")));
  EXPECT_THAT(ExplanationText(Reply::array({container, container})),
              HasSubstr("unified cpu.idle = 1, environment A by hooks koordlet.json\n"));
}

TEST(ExplainCommandTest, SeveralOfOneNameAreToldApartByTheirIds) {
  Reply first = Reply::parse(R"({"id":"0123456789abcdef","namespace":"shop","pod":"db",
      "name":"main","state":"exited","hints":[],"candidates":[]})");
  Reply second = first;
  second["id"] = "fedcba9876543210";
  const std::string same = ExplanationText(Reply::array({first, second}));
  EXPECT_THAT(same, HasSubstr("`explain ID` tells more"));
  EXPECT_THAT(same, HasSubstr("shop/db/main  0123456789abc"));
  EXPECT_THAT(same, HasSubstr("shop/db/main  fedcba9876543"));
  second["name"] = "side";
  const std::string others = ExplanationText(Reply::array({first, second}));
  EXPECT_THAT(others, HasSubstr("`explain NAMESPACE/POD/CONTAINER` tells more"));
  EXPECT_THAT(others, Not(HasSubstr("0123456789abc")));
}

}  // namespace
}  // namespace resmgr
