// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::AllOf;
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

TEST(ExplainCommandTest, TellsOfMistypedAnnotations) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"mistyped":["annotation aligment.x ignored: unknown key"]})");
  EXPECT_THAT(ExplanationText(Reply::array({container})),
              HasSubstr("  mistyped          annotation aligment.x ignored: unknown key\n"));
}

TEST(ExplainCommandTest, TellsTheAdviceAboutUseAndWhatARebalanceByUseDid) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"advice":"shop/db/main leaves CPUs 2-3 idle: 1.0 % busy",
      "byUse":"moved from NUMA node #0"})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text,
              HasSubstr("  advice            shop/db/main leaves CPUs 2-3 idle: 1.0 % busy\n"));
  EXPECT_THAT(text, HasSubstr("  by use            moved from NUMA node #0\n"));
}

TEST(ExplainCommandTest, TellsWhyThereIsNoFileOfItsCpus) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[],
      "cpuFile":"none: it has a mount of its own at /run, and the file would be at /run/cri-resmgr"})");
  EXPECT_THAT(ExplanationText(Reply::array({container})),
              HasSubstr("file of its CPUs  none: it has a mount of its own at /run, and"));
}

TEST(ExplainCommandTest, AClaimIsToldByItsCpusAndByWhoCarriesIt) {
  Reply claim = Reply::parse(R"({"id":"","namespace":"shop","pod":"fast","name":"claim",
      "state":"claim","claim":"u-1","claimState":"held","request":2000,"device":"cpu-numa-1",
      "numaNode":1,"wholeCores":true,"sharedWithinPod":true,"exclusive":"4-5","pool":"exclusive",
      "reason":"2 whole CPUs","carriers":["shop/dsp/main"],"candidates":[],"hints":[],
      "cdiFile":"/var/run/cdi/x.json","since":"2026-11-28T10:00:00.000Z"})");
  EXPECT_EQ(ExplanationText(Reply::array({claim})),
            "shop/fast/claim\n"
            "  uid         u-1\n"
            "  state       held, prepared 2026-11-28T10:00:00.000Z\n"
            "  asks for    2 CPUs of cpu-numa-1, NUMA node 1; whole cores; for all containers of a "
            "pod\n"
            "  holds       CPUs 4-5\n"
            "  pool        exclusive\n"
            "  because     2 whole CPUs\n"
            "  carried by  shop/dsp/main\n"
            "  CDI file    /var/run/cdi/x.json\n");
  Reply narrowed = claim;
  narrowed["coreType"] = "p-core";
  narrowed["l3"] = true;
  narrowed["avoidSiblings"] = true;
  narrowed["seen"] = "4";
  const std::string parameters = ExplanationText(Reply::array({narrowed}));
  EXPECT_THAT(parameters,
              HasSubstr("; whole cores; of type p-core; in one L3 cache; containers see "
                        "one thread of each core; for all containers"));
  EXPECT_THAT(parameters, HasSubstr("  seen        CPU 4\n"));
  Reply other = claim;
  other["name"] = "claim[1]";
  other["carriers"] = Reply::array();
  other["exclusive"] = "";
  const std::string parts = ExplanationText(Reply::array({claim, other}));
  EXPECT_THAT(parts, HasSubstr("shop/fast/claim\n"));
  EXPECT_THAT(parts, HasSubstr("shop/fast/claim[1]\n"));
  EXPECT_THAT(parts, HasSubstr("  holds       no CPUs\n"));
  EXPECT_THAT(parts, HasSubstr("  carried by  no container\n"));
  other["claim"] = "u-2";
  EXPECT_THAT(ExplanationText(Reply::array({claim, other})), HasSubstr("CONTAINER"))
      << "several claims are a table";
  claim["reservedFor"] = Reply::array();
  EXPECT_THAT(ExplanationText(Reply::array({claim})),
              HasSubstr("  reserved for  all pods of namespace shop\n"));
  claim["reservedFor"] = Reply::parse(R"([{"uid":"p-1","pod":"shop/dsp"},{"uid":"p-2"}])");
  EXPECT_THAT(ExplanationText(Reply::array({claim})),
              HasSubstr("  reserved for  pod shop/dsp\n"
                        "  reserved for  the pod with uid p-2\n"
                        "  carried by    shop/dsp/main\n"));
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

TEST(ExplainCommandTest, UnderTheNullPolicyTellsWhatIsNotReleasedYet) {
  const Reply bound = Reply::parse(R"({"id":"c2","namespace":"shop","pod":"web","name":"main",
      "policy":"null","reason":"no policy places it any more","settled":false,
      "notUpdated":"disk on fire","hints":[],"candidates":[],"owners":[]})");
  EXPECT_THAT(
      ExplanationText(Reply::array({bound})),
      AllOf(HasSubstr("in force          not yet\n"), HasSubstr("not updated       disk on fire\n"),
            Not(HasSubstr("it decides nothing"))));
  const Reply seen = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "policy":"null","hints":[],"candidates":[],"owners":[]})");
  EXPECT_THAT(ExplanationText(Reply::array({bound, seen})),
              AllOf(HasSubstr("IN FORCE"), HasSubstr("not yet   no policy places it any more\n"),
                    HasSubstr("\n\nCONTAINER     CPUS  MEMS  CHANGED\nshop/db/main")));
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

TEST(ExplainCommandTest, ATableOfSeveralIsCutToTheTerminal) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[],"candidates":[],"owners":[],"cpus":"0-1","reason":"a rule that decided, for this and that and other reasons"})");
  Reply other = container;
  other["name"] = "side";
  const Reply both = Reply::array({container, other});
  const std::string cut = ExplanationText(both, {.width = 80});
  EXPECT_THAT(cut, HasSubstr("…"));
  EXPECT_THAT(cut, Not(HasSubstr("and other reasons")));
  EXPECT_THAT(ExplanationText(both), HasSubstr("and other reasons"));
  EXPECT_THAT(ExplanationText(Reply::array({container}), {.width = 80}),
              HasSubstr("and other reasons"));
}

TEST(ExplainCommandTest, CandidatesAreATable) {
  const Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "hints":[{"source":"device /dev/nvme0","cpus":"","nodes":"1"}],"owners":[],
      "candidates":["node 1: the best","node 0: behind node 1 by: x","node 1: a note"],
      "considered":[
        {"name":"node 1","free":6000,"freeMemory":8589934592,"nearDevices":100,
         "verdict":"taken: the best"},
        {"name":"node 0","free":7500,"freeMemory":1073741824,"nearDevices":0,"affinity":2.5,
         "verdict":"node 1 was better: nearer to all its devices and volumes"}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(
      text,
      HasSubstr("    CANDIDATE  FREE CPUS  FREE MEMORY  NEAR DEVICES  AFFINITY  VERDICT\n"
                "    node 1     6          8 GiB        100 %         -         taken: the best\n"
                "    node 0     7.5        1 GiB        0 %           2.5       node 1 was better: "
                "nearer to all its devices and volumes\n"
                "    node 1: a note\n"));
  EXPECT_THAT(text, Not(HasSubstr("behind")));
}

TEST(ExplainCommandTest, ARefusedContainerHasItsRequestAndWhatThePoolsHold) {
  const Reply container = Reply::parse(R"({"id":"","namespace":"shop","pod":"big","name":"main",
      "state":"refused","qos":"Guaranteed","request":16000,"limit":16000,"memoryRequest":33554432,
      "memoryLimit":33554432,"refused":"needs 16 exclusive CPUs; never on this node; refused at 2026-11-27",
      "hints":[],"candidates":[],"held":[
        {"name":"shared","exclusive":"","shared":"0,4-7","sharedRequest":1500,"free":3500,
         "memoryBytes":0,"memoryUsed":0},
        {"name":"exclusive","exclusive":"1-3","shared":"","sharedRequest":0,"free":0,
         "memoryBytes":0,"memoryUsed":0}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("asks for   16 CPUs, limit 16; memory 32 MiB, limit 32 MiB\n"));
  EXPECT_THAT(text, HasSubstr("refused    needs 16 exclusive CPUs; never on this node"));
  EXPECT_THAT(text, HasSubstr("    shared     -          0,4-7   1.5"));
  EXPECT_THAT(text, HasSubstr("    exclusive  1-3        -       0"));
  EXPECT_THAT(text, Not(HasSubstr("MEMORY")));
}

TEST(ExplainCommandTest, ARefusalIsToldOnceBesideOtherProblems) {
  const Reply container = Reply::parse(R"({"id":"","namespace":"shop","pod":"big","name":"main",
      "state":"refused","refused":"needs 16 exclusive CPUs; refused at 2026-11-27",
      "hints":[],"candidates":[],"problems":[
        {"kind":"refused","message":"shop/big/main was refused: needs 16 exclusive CPUs",
         "next":"cri-resmgr-ctl explain shop/big/main"},
        {"kind":"overcommit","message":"pool shared is full"}]})");
  const std::string text = ExplanationText(Reply::array({container}));
  EXPECT_EQ(text.find("needs 16 exclusive CPUs"), text.rfind("needs 16 exclusive CPUs"));
  EXPECT_THAT(text, Not(HasSubstr("cri-resmgr-ctl explain")));
  EXPECT_THAT(text, HasSubstr("problem  overcommit: pool shared is full\n"));
}

TEST(ExplainCommandTest, OneCpuIsNotCpus) {
  Reply container = Reply::parse(R"({"id":"c1","namespace":"shop","pod":"db","name":"main",
      "cpus":"7","mems":"1","exclusive":"7","hints":[
        {"source":"device a","cpus":"3","nodes":"0"},
        {"source":"device b","cpus":"0,2","nodes":"0-1"}],"candidates":[]})");
  std::string text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("  CPU 7, all of its own; memory node 1\n"));
  EXPECT_THAT(text, HasSubstr("  near device a: CPU 3, memory node 0\n"));
  EXPECT_THAT(text, HasSubstr("  near device b: CPUs 0,2, memory nodes 0-1\n"));
  container["cpus"] = "6-7";
  container["mems"] = "0,1";
  text = ExplanationText(Reply::array({container}));
  EXPECT_THAT(text, HasSubstr("  CPUs 6-7: 7 of its own, - shared; memory nodes 0,1\n"));
}

}  // namespace
}  // namespace resmgr
