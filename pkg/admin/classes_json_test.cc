// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/classes_json.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
