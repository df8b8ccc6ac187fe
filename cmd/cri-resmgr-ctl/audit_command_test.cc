// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/audit_command.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/cri-resmgr-ctl/cli.h"

namespace resmgr {
namespace {

TEST(AuditCommandTest, ShowsEachValueThatDiffers) {
  const Reply report =
      Reply::parse(R"({"checked":2,"drifted":1,"unread":1,"changing":0,"runtimeProblem":"away",
      "containers":[
        {"container":"ns/a/main","id":"1","unread":"","sentAgain":true,
         "drifts":[{"where":"cgroup","value":"cpuset.cpus","decided":"1-2","actual":"0-7"},
                   {"where":"runtime","value":"cpuset.mems","decided":"0","actual":""}]},
        {"container":"ns/b/main","id":"2","unread":"no cgroup","sentAgain":false,"drifts":[]}]})");
  EXPECT_EQ(AuditText(report),
            "CONTAINER  WHERE    VALUE        DECIDED  ACTUAL  REPAIR\n"
            "ns/a/main  cgroup   cpuset.cpus  1-2      0-7     sent again\n"
            "ns/a/main  runtime  cpuset.mems  0        -       sent again\n"
            "not compared: ns/b/main: no cgroup\n"
            "what the runtime reports is not compared: away\n"
            "2 containers compared, 1 other than decided, 1 not found, 0 left out while they "
            "change\n");
}

TEST(AuditCommandTest, NamesACauseOnceWithTheContainersThatItAffects) {
  const Reply report =
      Reply::parse(R"({"checked":2,"drifted":2,"changing":0,"runtimeProblem":"","containers":[
        {"container":"ns/a/main","id":"1","unread":"","sentAgain":false,
         "drifts":[{"where":"effective","value":"cpuset.cpus.effective","decided":"4-5",
                    "actual":"0-3","why":"/kubepods allows CPUs 0-3 only"}]},
        {"container":"ns/b/main","id":"2","unread":"","sentAgain":false,
         "drifts":[{"where":"effective","value":"cpuset.cpus.effective","decided":"6",
                    "actual":"0-3","why":"/kubepods allows CPUs 0-3 only"}]}]})");
  EXPECT_EQ(AuditText(report),
            "CONTAINER  WHERE      VALUE                  DECIDED  ACTUAL  REPAIR\n"
            "ns/a/main  effective  cpuset.cpus.effective  4-5      0-3     -\n"
            "ns/b/main  effective  cpuset.cpus.effective  6        0-3     -\n"
            "ns/a/main and 1 more container: /kubepods allows CPUs 0-3 only\n"
            "2 containers compared, 2 other than decided, 0 left out while they change\n");
}

TEST(AuditCommandTest, ShowsFilesOfClassesAndExitsWith3ForThoseThatStayDifferent) {
  Reply report =
      Reply::parse(R"({"checked":0,"drifted":0,"changing":0,"runtimeProblem":"","containers":[],
      "files":[{"file":"/proc/irq/1/smp_affinity","wanted":"f9","actual":"ff","unread":"",
                "repaired":true},
               {"file":"/sys/a","wanted":"1","actual":"","unread":"no file","repaired":false}]})");
  EXPECT_EQ(AuditText(report),
            "FILE                      WANTED  ACTUAL   REPAIR\n"
            "/proc/irq/1/smp_affinity  f9      ff       written again\n"
            "/sys/a                    1       no file  -\n"
            "0 containers compared, 0 other than decided, 0 left out while they change\n");
  EXPECT_FALSE(AuditOutcome(report, true).ok());
  report["files"].erase(1);
  EXPECT_TRUE(AuditOutcome(report, true).ok());
  report["filesProblem"] = "it hangs";
  EXPECT_NE(AuditText(report).find("the files of classes are not compared: it hangs\n"),
            std::string::npos);
}

TEST(AuditCommandTest, ShowsThatNothingDiffers) {
  const Reply report =
      Reply::parse(R"({"checked":2,"drifted":0,"changing":1,"runtimeProblem":"","containers":[]})");
  EXPECT_EQ(AuditText(report),
            "2 containers compared, 0 other than decided, 1 left out while they change\n");
}

TEST(AuditCommandTest, ExitsWith3WhereAValueDiffersAndStays) {
  const auto code = [](const std::string& container, bool repair) {
    const Reply report = Reply::parse("{\"containers\":[" + container + "]}");
    return ExitCodeOf(AuditOutcome(report, repair));
  };
  const auto container = [](const std::string& where, const std::string& why, bool sent) {
    return fmt::format(R"({{"sentAgain":{},"drifts":[{{"where":"{}","why":"{}"}}]}})", sent, where,
                       why);
  };
  EXPECT_EQ(code("", false), 0);
  EXPECT_EQ(code(R"({"unread":"no cgroup","sentAgain":false,"drifts":[]})", false), 0);
  EXPECT_EQ(code(container("cgroup", "", false), false), 3);
  EXPECT_EQ(code(container("cgroup", "", true), true), 0) << "the repair is complete";
  EXPECT_EQ(code(container("runtime", "", true), true), 0);
  EXPECT_EQ(code(container("cgroup", "", false), true), 3);
  EXPECT_EQ(code(container("effective", "a cgroup above", true), true), 3);
  EXPECT_EQ(code(container("affinity", "", true), true), 3);
}

TEST(UninstallCommandTest, TellsWhetherAllIsDone) {
  const Reply none = Reply::parse(R"({"moves":[],"done":false})");
  EXPECT_EQ(UninstallText(none, false), "no container moves\n");
  EXPECT_EQ(UninstallText(none, true), "no container moves\n") << "the rest is the command's error";
  const Reply numbers = Reply::parse(R"({"moves":[{"container":"ns/a/main",
      "from":{"cpus":"0-3","exclusive":"","mems":"0","shares":512,"quota":-1,"period":null},
      "to":{"cpus":"0-3","exclusive":"","mems":"0","shares":null,"quota":20000,"period":100000,
            "reason":"given back"}}],"done":false})");
  EXPECT_THAT(UninstallText(numbers, false),
              testing::AllOf(testing::HasSubstr("mems 0 shares 512 quota none"),
                             testing::HasSubstr("shares as asked quota 20000 of 100000 us")));
  const Reply moved = Reply::parse(R"({"moves":[{"container":"ns/a/main",
      "from":{"cpus":"1-2","exclusive":"1-2","mems":""},
      "to":{"cpus":"0-7","exclusive":"","mems":"","reason":"let go"}}],"done":true})");
  EXPECT_EQ(UninstallText(moved, true),
            "CONTAINER  FROM             TO               REASON\n"
            "ns/a/main  cpus 1-2 mems -  cpus 0-7 mems -  let go\n"
            "done: no container is bound by cri-resmgr any more\n");
}

}  // namespace
}  // namespace resmgr
