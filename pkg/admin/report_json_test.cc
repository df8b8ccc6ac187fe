// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/report_json.h"

#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using std::chrono::seconds;

TEST(AuditJsonTest, HasWhatWasFound) {
  const AuditReport report{
      .findings = {{.key = ContainerKey{1},
                    .container = "ns/pod/main",
                    .id = ContainerId("abc"),
                    .drifts = {{Drift::Where::kEffective, "cpuset.cpus", "1-2", "0-7", "a slice"}},
                    .sent_again = true},
                   {.container = "ns/other/main", .unread = "no cgroup"}},
      .checked = 5,
      .drifted = 1,
      .unread = 1,
      .changing = 2,
      .runtime_problem = "away"};
  EXPECT_EQ(
      AuditJson(report).dump(),
      R"({"checked":5,"drifted":1,"unread":1,"changing":2,"runtimeProblem":"away","containers":[)"
      R"({"container":"ns/pod/main","id":"abc","drifts":[{"where":"effective",)"
      R"("value":"cpuset.cpus","decided":"1-2","actual":"0-7","why":"a slice"}],"unread":"",)"
      R"("sentAgain":true},{"container":"ns/other/main","id":"","drifts":[],)"
      R"("unread":"no cgroup","sentAgain":false}]})");
}

TEST(AuditJsonTest, HasFilesOfClassesThatDiffer) {
  OrderedJson answer = OrderedJson::object();
  AddFiles(std::vector<HostClasses::Audited>(), answer);
  EXPECT_EQ(answer.dump(), "{}");
  AddFiles(
      std::vector<HostClasses::Audited>{
          {.difference = {.path = "proc/irq/1/smp_affinity", .wanted = "f9", .now = "ff"},
           .repaired = true},
          {.difference = {.path = "sys/a", .wanted = "1", .unread = "no file"}}},
      answer);
  EXPECT_EQ(answer.dump(),
            R"({"files":[{"file":"/proc/irq/1/smp_affinity","wanted":"f9","actual":"ff",)"
            R"("unread":"","repaired":true},{"file":"/sys/a","wanted":"1","actual":"",)"
            R"("unread":"no file","repaired":false}]})");
  answer = OrderedJson::object();
  AddFiles(Unavailable("it hangs"), answer);
  EXPECT_EQ(answer.dump(), R"({"filesProblem":"it hangs"})");
}

TEST(ClassesJsonTest, HasTheMembersOfTheContract) {
  ClassReport report;
  report.classes = {{.kind = "idle", .name = "10us", .containers = {"ns/pod/c"}},
                    {.kind = "clock", .name = "performance", .active = false, .reason = "none"}};
  EXPECT_EQ(ClassesJson(report), nlohmann::ordered_json::parse(
                                     R"([{"kind":"idle","name":"10us","state":"active","reason":"",
                             "containers":["ns/pod/c"]},
                            {"kind":"clock","name":"performance","state":"inactive",
                             "reason":"none","containers":[]}])"));
  EXPECT_EQ(ClassesJson({}), nlohmann::ordered_json::array());
}

TEST(ClassesJsonTest, OfOneContainerAndOfTheHost) {
  ClassReport report;
  report.containers["id"] = {{.kind = "idle",
                              .name = "10us",
                              .source = "classes.isolation",
                              .way = "by CPU",
                              .in_force = "10"}};
  report.held["proc/irq/1/smp_affinity"] = "ff";
  EXPECT_EQ(ContainerClassesJson(report, "id"),
            nlohmann::ordered_json::parse(R"([{"kind":"idle","name":"10us","state":"active",
                             "source":"classes.isolation","way":"by CPU","inForce":"10",
                             "reason":""}])"));
  EXPECT_EQ(ContainerClassesJson(report, "other"), nlohmann::ordered_json::array());
  EXPECT_EQ(
      ChangedFilesJson(report),
      nlohmann::ordered_json::parse(R"([{"file":"/proc/irq/1/smp_affinity","before":"ff"}])"));
}

using Time = std::chrono::system_clock::time_point;

TEST(ProblemsJsonTest, IsTheContract) {
  EXPECT_EQ(ProblemsJson({{.kind = "throttled",
                           .since = Time(seconds(0)),
                           .message = "m",
                           .objects = {"ns/web/main"},
                           .next = "n"}})
                .dump(),
            R"([{"kind":"throttled","since":"1970-01-01T00:00:00.000Z","message":"m",)"
            R"("objects":["ns/web/main"],"next":"n"}])");
  EXPECT_EQ(ProblemsJson({}).dump(), "[]");
}

TEST(ProblemTimesTest, ProblemsWithoutATimeAreSinceTheyWereListedFirst) {
  ProblemTimes times;
  const Problem state{.kind = "state", .message = "m"};
  const Problem known{.kind = "throttled", .since = Time(seconds(7))};
  const Problem drift{.kind = "drift", .message = "in 2 audits", .objects = {"a"}};
  const Problem later{.kind = "drift", .message = "in 3 audits", .objects = {"a"}};
  auto listed = times.Completed({state, known, drift}, Time(seconds(10)));
  EXPECT_EQ(listed[0].since, Time(seconds(10)));
  EXPECT_EQ(listed[1].since, Time(seconds(7)));
  listed = times.Completed({state, later}, Time(seconds(20)));
  EXPECT_EQ(listed[0].since, Time(seconds(10)));
  EXPECT_EQ(listed[1].since, Time(seconds(10))) << "with other numbers";
  times.Completed({}, Time(seconds(30)));
  EXPECT_EQ(times.Completed({state}, Time(seconds(40)))[0].since, Time(seconds(40)));
}

}  // namespace
}  // namespace resmgr
