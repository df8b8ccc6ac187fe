// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/classes_json.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using Json = nlohmann::ordered_json;

TEST(ClassesJsonTest, HasTheMembersOfTheContract) {
  ClassReport report;
  report.classes = {{.kind = "idle", .name = "10us", .containers = {"ns/pod/c"}},
                    {.kind = "clock", .name = "performance", .active = false, .reason = "none"}};
  EXPECT_EQ(ClassesJson(report),
            Json::parse(R"([{"kind":"idle","name":"10us","state":"active","reason":"",
                             "containers":["ns/pod/c"]},
                            {"kind":"clock","name":"performance","state":"inactive",
                             "reason":"none","containers":[]}])"));
  EXPECT_EQ(ClassesJson({}), Json::array());
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
            Json::parse(R"([{"kind":"idle","name":"10us","state":"active",
                             "source":"classes.isolation","way":"by CPU","inForce":"10",
                             "reason":""}])"));
  EXPECT_EQ(ContainerClassesJson(report, "other"), Json::array());
  EXPECT_EQ(ChangedFilesJson(report),
            Json::parse(R"([{"file":"/proc/irq/1/smp_affinity","before":"ff"}])"));
}

}  // namespace
}  // namespace resmgr
