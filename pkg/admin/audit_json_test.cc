// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/audit_json.h"

#include <vector>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
