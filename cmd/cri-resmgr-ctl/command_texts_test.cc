// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/cri-resmgr-ctl/audit_command.h"
#include "cmd/cri-resmgr-ctl/cli.h"
#include "cmd/cri-resmgr-ctl/node_commands.h"
#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "cmd/cri-resmgr-ctl/status_command.h"
#include "cmd/cri-resmgr-ctl/top_command.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

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
              testing::AllOf(HasSubstr("mems 0 shares 512 quota none"),
                             HasSubstr("shares as asked quota 20000 of 100000 us")));
  const Reply moved = Reply::parse(R"({"moves":[{"container":"ns/a/main",
      "from":{"cpus":"1-2","exclusive":"1-2","mems":""},
      "to":{"cpus":"0-7","exclusive":"","mems":"","reason":"let go"}}],"done":true})");
  EXPECT_EQ(UninstallText(moved, true),
            "CONTAINER  FROM             TO               REASON\n"
            "ns/a/main  cpus 1-2 mems -  cpus 0-7 mems -  let go\n"
            "done: no container is bound by cri-resmgr any more\n");
}

TEST(StatusCommandTest, ShowsProblemsOfThisVersionAndOfOlderOnes) {
  const Reply problems = Reply::parse(R"([{"kind":"state","message":"it is not saved","next":""},
      {"kind":"throttled","message":"ns/web/main waits","next":"echo max"},
      "the state cannot be saved: see the log"])");
  EXPECT_EQ(ProblemText(problems[0]), "state: it is not saved");
  EXPECT_EQ(ProblemText(problems[1]), "throttled: ns/web/main waits; try: echo max");
  EXPECT_EQ(ProblemText(problems[2]), "the state cannot be saved: see the log");
}

TEST(StatusCommandTest, ASocketIsNamedOnce) {
  EXPECT_EQ(WithSocket("connected", "/run/c.sock"), "connected (/run/c.sock)");
  const std::string error = "no runtime: cannot connect to /run/c.sock: there is no such socket";
  EXPECT_EQ(WithSocket(error, "/run/c.sock"), error);
}

TEST(StatusCommandTest, NamesThePagesOfThePackageWhereTheyAreInstalled) {
  const TempDir root;
  const std::filesystem::path program = root.File("usr/bin/cri-resmgr-ctl");
  EXPECT_EQ(PagesOf(program), "") << "a path in the source";
  const std::filesystem::path pages = root.File("usr/share/doc/cri-resmgr");
  std::filesystem::create_directories(pages / "docs");
  EXPECT_EQ(PagesOf(program), "") << "without the pages";
  std::ofstream(pages / "docs/troubleshooting.md") << "### drift\n";
  EXPECT_EQ(PagesOf(program), pages.string() + "/");
}

Reply Containers() {
  return Reply::parse(R"([
      {"namespace":"ns","pod":"web","container":"main","id":"a","cpus":"1-2","granted":2.0,
       "cpuUsed":1.234,"throttledPercent":12.5,"cpuPressure10":1.5,"cpuPressure60":2.5,
       "memoryBytes":4194304,"memoryByNode":{"0":4194304},"remotePercent":0.0,"pool":"exclusive",
       "since":"s"},
      {"namespace":"ns","pod":"db","container":"main","id":"b","cpus":"","granted":0.0,
       "cpuUsed":null,"throttledPercent":null,"cpuPressure10":null,"cpuPressure60":null,
       "memoryBytes":null,"memoryByNode":{},"remotePercent":null,"pool":"","since":"s"},
      {"namespace":"ns","pod":"api","container":"main","id":"c","cpus":"0","granted":0.5,
       "cpuUsed":1.5,"throttledPercent":0.0,"cpuPressure10":null,"cpuPressure60":null,
       "memoryBytes":1024,"memoryByNode":{},"remotePercent":50.0,"pool":"shared","since":"s"}])");
}

std::string Order(std::string_view key) {
  std::string ids;
  for (const Reply& container : SortedUsage(Containers(), key))
    ids += container.value("id", "");
  return ids;
}

TEST(TopCommandTest, SortsByEachKeyAndPutsWhatIsNotKnownLast) {
  EXPECT_EQ(Order("cpu"), "cab");
  EXPECT_EQ(Order("throttled"), "acb");
  EXPECT_EQ(Order("pressure"), "abc");
  EXPECT_EQ(Order("memory"), "acb");
  EXPECT_EQ(Order("remote"), "cab");
  EXPECT_EQ(Order("name"), "cba");
}

TEST(TopCommandTest, ShowsContainers) {
  EXPECT_EQ(ContainersUsageText(SortedUsage(Containers(), "throttled")),
            "NAMESPACE  POD  CONTAINER  CPUS  USED  GRANTED  THROTTLED  PRESSURE   MEMORY  REMOTE  "
            "POOL\n"
            "ns         web  main       1-2   1.23  2.00     12 %       2 % / 2 %  4 MiB   0 %     "
            "exclusive\n"
            "ns         api  main       0     1.50  0.50     0 %        -          1 KiB   50 %    "
            "shared\n"
            "ns         db   main       -     -     0.00     -          -          -       -       "
            "-\n");
  EXPECT_EQ(ContainersUsageText(Reply::array()), "No running containers whose use is known.\n");
}

TEST(TopCommandTest, WideShowsEventsOfMemory) {
  const Reply containers = Reply::parse(R"([
      {"namespace":"ns","pod":"web","container":"main","pool":"shared","oomKills":2,
       "memoryHighEvents":1200},
      {"namespace":"ns","pod":"db","container":"main","pool":"p","oomKills":0,
       "memoryHighEvents":null}])");
  const std::string text = ContainersUsageText(containers, {}, true);
  EXPECT_THAT(text, HasSubstr("  POOL    OOM KILLS  HIGH\n"));
  EXPECT_THAT(text, HasSubstr("  shared  2          1200\n"));
  EXPECT_THAT(text, HasSubstr("  p       0          -\n"));
}

TEST(TopCommandTest, ShowsCpusAsABusyMap) {
  const Reply cpus = Reply::parse(R"([
      {"id":0,"state":"reserved","containers":[],"busyPercent":null},
      {"id":1,"state":"shared","containers":["a","b","c","d","e"],"busyPercent":42.0}])");
  const std::string text = CpusText(cpus);
  EXPECT_THAT(text, HasSubstr("0    reserved  -"));
  EXPECT_THAT(text, HasSubstr("1    shared    42 %  ########............  a, b, c and 2 more\n"));
  const Reply cut = Reply::parse(R"([{"id":1,"state":"shared","containers":["a","b","c","d"],
                                      "containersMore":136,"busyPercent":42.0}])");
  EXPECT_THAT(CpusText(cut), HasSubstr("a, b, c and 137 more\n"));
  EXPECT_THAT(CpusText(cut, {}, true), HasSubstr("a, b, c, d and 136 more\n"));
}

TEST(TopCommandTest, TellsOfContainersThatAreBoundToNoCpus) {
  const Reply cpus = Reply::parse(R"([
      {"id":3,"state":"offline","containers":[],"busyPercent":null},
      {"id":7,"state":"shared","containers":["a"],"busyPercent":42.0,"unbound":2},
      {"id":8,"state":"shared","containers":["a"],"busyPercent":42.0,"unbound":2}])");
  EXPECT_THAT(CpusText(cpus), testing::EndsWith("\n\n2 containers are bound to no CPUs and may run "
                                                "on any: cri-resmgr-ctl containers -cpu 7\n"));
}

TEST(TopCommandTest, ShowsNodes) {
  const Reply nodes = Reply::parse(R"([{"id":0,"cpus":"0-1","cpuUsed":0.75,"memoryBytes":1073741824,
      "memoryUsed":1048576,"containerBytes":0,"otherPagesPercent":null}])");
  EXPECT_THAT(NodesUsageText(nodes), HasSubstr("0     0-1   0.75       1 GiB   1 MiB  0"));
}

TEST(ClassesCommandTest, ListsClassesWithTheirContainers) {
  EXPECT_EQ(ClassesText(Reply::array()), "No classes are in use.\n");
  const Reply classes = Reply::parse(
      R"([{"kind":"idle","name":"10us","state":"active","reason":"","containers":["n/p/a","n/p/b"]},
          {"kind":"clock","name":"performance","state":"inactive","reason":"no file",
           "containers":[]}])");
  EXPECT_EQ(ClassesText(classes),
            "KIND   NAME         STATE     CONTAINERS    REASON\n"
            "idle   10us         active    n/p/a, n/p/b  -\n"
            "clock  performance  inactive  -             no file\n");
}

TEST(PluginsCommandTest, ShowsThemInTheirOrderAndTheirFailuresBelow) {
  const Reply plugins = Reply::parse(R"([
      {"kind":"nri","name":"logger","index":"10","state":"ready",
       "events":["CreateContainer","StopContainer"],"calls":12,"failures":0,"lastError":"",
       "p50Micros":90},
      {"kind":"hook","name":"koordlet","index":"","state":"failed","events":[],"calls":1,
       "failures":1,"lastError":"no answer","p50Micros":0}])");
  EXPECT_EQ(PluginsText(plugins),
            "PLUGIN     KIND  STATE   CALLS  FAILURES  P50    EVENTS\n"
            "10-logger  nri   ready   12     0         90 us  CreateContainer, StopContainer\n"
            "koordlet   hook  failed  1      1         -      -\n"
            "  koordlet: no answer\n");
  EXPECT_EQ(PluginsText(Reply::array()), "no plugins\n");
}

TEST(PoolsDrawingTest, ABalloonThatGrowsHasNoMoreFreeThanItMayHave) {
  nlohmann::ordered_json pool = {{"name", "flex[0]"},    {"parent", ""},       {"cpus", "1"},
                                 {"shared", "1"},        {"exclusive", ""},    {"mems", ""},
                                 {"sharedRequest", 500}, {"free", 3500},       {"memoryBytes", 0},
                                 {"memoryUsed", 0},      {"containers", {"a"}}};
  EXPECT_THAT(DrawPools(nlohmann::ordered_json::array({pool})), HasSubstr("  3.5 of 4  "));
  pool["free"] = 500;
  EXPECT_THAT(DrawPools(nlohmann::ordered_json::array({pool})), HasSubstr("  0.5 of 1  "));
}

TEST(RuntimesCommandTest, ShowsEachAndTheLastErrorsBelow) {
  const Reply runtimes = Reply::parse(R"([
      {"name":"default","socket":"/run/c.sock","version":"containerd 1.7.24","state":"connected",
       "since":"2024-05-06T07:08:09.123Z","handlers":[],"pods":12,"containers":30,"calls":400,
       "errors":3,"lastError":""},
      {"name":"kata","socket":"/run/kata.sock","version":"","state":"away","since":null,
       "handlers":["kata","kata-qemu"],"pods":null,"containers":null,"calls":0,"errors":0,
       "lastError":"no listener"}])");
  EXPECT_EQ(RuntimesText(runtimes),
            "RUNTIME  STATE      SINCE                     VERSION            PODS  CONTAINERS  "
            "CALLS  ERRORS  HANDLERS         SOCKET\n"
            "default  connected  2024-05-06T07:08:09.123Z  containerd 1.7.24  12    30          "
            "400    3       all others       /run/c.sock\n"
            "kata     away       -                         -                  -     -           "
            "0      0       kata, kata-qemu  /run/kata.sock\n"
            "  kata: no listener\n");
  Reply only = Reply::array({runtimes[0]});
  EXPECT_THAT(RuntimesText(only), HasSubstr("  all       /run/c.sock\n"));
  only[0]["calls"] = only[0]["errors"] = nullptr;
  EXPECT_THAT(RuntimesText(only), HasSubstr("  30          -      -       all"));
  only[0]["handlers"] = {"", "runc", "runc-pinned"};
  EXPECT_THAT(RuntimesText(only), HasSubstr("  \"\", runc, runc-pinned  /run/c.sock\n"));
  EXPECT_EQ(RuntimesText(Reply::array()), "no CRI runtimes: the daemon relays no CRI calls\n");
}

}  // namespace
}  // namespace resmgr
