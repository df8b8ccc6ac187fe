// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/adjustment_merge.h"

#include <array>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/merge/default_validator.h"
#include "pkg/nri/testing/messages.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Fails;
using resmgr::test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kPristine = R"(
  id: "ctr" pod_sandbox_id: "pod" name: "web"
  annotations { key: "old" value: "1" }
  args: ["sh", "-c", "true"]
  env: ["PATH=/bin", "HOME=/root", "EMPTY="]
  mounts { destination: "/data" source: "/srv/data" type: "bind" options: ["rbind", "ro"] }
  mounts { destination: "/logs" source: "/srv/logs" type: "bind" }
  hooks {}
  CDI_devices { name: "vendor.com/gpu=0" }
  linux {
    namespaces { type: "mount" } namespaces { type: "network" path: "/run/netns/x" }
    devices { path: "/dev/null" type: "c" major: 1 minor: 3 }
    resources {
      memory { limit { value: 1000 } } cpu { shares { value: 512 } cpus: "0-3" }
      hugepage_limits { page_size: "2MB" limit: 4 }
      unified { key: "memory.high" value: "max" }
    }
    oom_score_adj { value: 500 }
    sysctl { key: "net.core.somaxconn" value: "64" }
    rdt { clos_id { value: "gold" } }
  })";

api::CreateContainerResponse Reply(std::string_view adjust) {
  return Make<api::CreateContainerResponse>("adjust {" + std::string(adjust) + "}");
}

class AdjustmentMergeTest : public testing::Test {
 protected:
  // Adds the replies for plugins "10-a", "20-b" and so on; all are taken.
  template <typename... Texts>
  void Add(const Texts&... adjusts) {
    (TakeNext(adjusts), ...);
  }

  Status Try(std::string_view plugin, std::string_view adjust) {
    return merge_.Add(plugin, Reply(adjust));
  }

  // The reason why the second is refused after the first.
  std::string Conflict(std::string_view first, std::string_view second) {
    AdjustmentMerge merge(Given(Make<api::Container>(kPristine)));
    EXPECT_THAT(merge.Add("10-a", Reply(first)), IsOk());
    const std::string before = merge.adjustment().ShortDebugString();
    const Status refused = merge.Add("20-b", Reply(second));
    if (!refused.ok()) {
      EXPECT_EQ(merge.adjustment().ShortDebugString(), before);
    }
    return std::string(Message(refused));
  }

  AdjustmentMerge merge_{
      Given(Make<api::Container>(kPristine), Make<api::PodSandbox>("id: 'pod' name: 'p'"))};

 private:
  void TakeNext(std::string_view adjust) {
    EXPECT_THAT(merge_.Add(kPlugins.at(plugins_++), Reply(adjust)), IsOk());
  }

  static constexpr std::array<std::string_view, 3> kPlugins{"10-a", "20-b", "30-c"};
  size_t plugins_ = 0;
};

api::ContainerUpdate& AddUpdate(std::string_view id, api::CreateContainerResponse& reply) {
  api::ContainerUpdate& update = *reply.add_update();
  update.set_container_id(std::string(id));
  return update;
}

// A plugin's adjustment of each kind, and the conflict that it makes when it comes twice.
struct Kind {
  std::string_view adjust;
  std::string_view field;  // "": no conflict
};

constexpr Kind kKinds[] = {
    {"annotations { key: 'k' value: 'v' }", "Annotations k"},
    {"mounts { destination: '/x' source: '/y' type: 'bind' options: 'rbind' }", "Mounts /x"},
    {"mounts { destination: '-/data' }", ""},
    {"env { key: 'K' value: 'v' }", "Env K"},
    {"args: ['echo', '']", "Args"},
    {"hooks { prestart { path: '/bin/hook' args: 'hook' timeout { value: 0 } } }", ""},
    {"linux { devices { path: '/dev/x' type: 'c' major: 10 minor: 2 } }", "Devices /dev/x"},
    {"linux { namespaces { type: 'pid' path: '/proc/1/ns/pid' } }", "Namespace pid"},
    {"rlimits { type: 'RLIMIT_NOFILE' hard: 4 soft: 2 }", "Rlimits RLIMIT_NOFILE"},
    {"CDI_devices { name: 'v.com/d=1' }", "CdiDevices v.com/d=1"},
    {"linux { io_priority { class: IO_PRIORITY_NONE } }", "IoPriority"},
    {"linux { net_devices { key: 'eth1' value { name: 'net1' } } }", "LinuxNetDevices eth1"},
    {"linux { scheduler { policy: SCHEDULER_FIFO priority: 5 } }", "LinuxSched"},
    {"linux { sysctl { key: 'a.b' value: '1' } }", "Sysctl a.b"},
    {"linux { memory_policy { mode: MEMORY_POLICY_BIND nodes: '0' } }", "MemoryPolicy"},
    {"linux { cgroups_path: '/x' }", "CgroupsPath"},
    {"linux { oom_score_adj { value: 0 } }", "OomScoreAdj"},
    {"linux { seccomp_policy { default_action: 'SCMP_ACT_ERRNO' } }", "SeccompPolicy"},
    {"linux { rdt { clos_id { value: 'x' } } }", "RdtClosID"},
    {"linux { rdt { schemata { value: ['L3:0=f', 'MB:0=1'] } } }", "RdtSchemata"},
    {"linux { rdt { enable_monitoring { value: false } } }", "RdtEnableMonitoring"},
    {"linux { rdt { remove: true } }", ""},
    {"linux { resources { cpu { shares { value: 0 } } } }", "CPUShares"},
    {"linux { resources { cpu { quota { value: -1 } } } }", "CPUQuota"},
    {"linux { resources { cpu { period { value: 7 } } } }", "CPUPeriod"},
    {"linux { resources { cpu { realtime_runtime { value: 7 } } } }", "CPURealtimeRuntime"},
    {"linux { resources { cpu { realtime_period { value: 7 } } } }", "CPURealtimePeriod"},
    {"linux { resources { cpu { cpus: '1' } } }", "CPUSetCPUs"},
    {"linux { resources { cpu { mems: '1' } } }", "CPUSetMems"},
    {"linux { resources { memory { limit { value: 7 } } } }", "MemLimit"},
    {"linux { resources { memory { reservation { value: 7 } } } }", "MemReservation"},
    {"linux { resources { memory { swap { value: 7 } } } }", "MemSwapLimit"},
    {"linux { resources { memory { kernel { value: 7 } } } }", "MemKernelLimit"},
    {"linux { resources { memory { kernel_tcp { value: 7 } } } }", "MemTCPLimit"},
    {"linux { resources { memory { swappiness { value: 7 } } } }", "MemSwappiness"},
    {"linux { resources { memory { disable_oom_killer { value: true } } } }",
     "MemDisableOomKiller"},
    {"linux { resources { memory { use_hierarchy { value: true } } } }", "MemUseHierarchy"},
    {"linux { resources { pids { limit: 0 } } }", "PidsLimit"},
    {"linux { resources { blockio_class { value: '' } } }", "BlockioClass"},
    {"linux { resources { rdt_class { value: 'x' } } }", "RdtClass"},
    {"linux { resources { hugepage_limits { page_size: '1GB' limit: 7 } } }", "HugepageLimits 1GB"},
    {"linux { resources { unified { key: 'x.y' value: '7' } } }", "CgroupsUnified x.y"},
    {"linux { resources { devices { allow: true type: 'c' access: 'r' } } }", ""},
};

TEST_F(AdjustmentMergeTest, WhatOnePluginWantsIsTheResult) {
  for (const Kind& kind : kKinds) {
    AdjustmentMerge merge(Given(Make<api::Container>(kPristine)));
    EXPECT_THAT(merge.Add("10-a", Reply(kind.adjust)), IsOk()) << kind.adjust;
    EXPECT_THAT(merge.adjustment(), Is(kind.adjust));
    EXPECT_THAT(merge.pristine().Make(), Is(kPristine));
  }
}

TEST_F(AdjustmentMergeTest, AFieldHasOneOwner) {
  for (const auto& [adjust, field] : kKinds) {
    const std::string expected =
        field.empty() ? ""
                      : "plugins \"20-b\" and \"10-a\" both tried to set " + std::string(field);
    EXPECT_EQ(Conflict(adjust, adjust), expected) << adjust;
  }
}

TEST_F(AdjustmentMergeTest, APluginMayNotSetAnEntryTwiceInAReply) {
  EXPECT_THAT(Try("10-a", "mounts { destination: '/x' } mounts { destination: '/x' }"),
              Fails(StatusCode::kFailedPrecondition,
                    "plugins \"10-a\" and \"10-a\" both tried to set Mounts /x"));
  EXPECT_THAT(merge_.adjustment(), Is(""));
  EXPECT_THAT(merge_.owned("ctr"), IsEmpty());
}

TEST_F(AdjustmentMergeTest, ReplacingIsRemovingAndSetting) {
  Add("annotations { key: 'k' value: 'a' } mounts { destination: '/x' source: '/a' } "
      "env { key: 'K' value: 'a' } args: 'a' linux { devices { path: '/dev/x' type: 'c' } "
      "namespaces { type: 'pid' } sysctl { key: 's' value: 'a' } "
      "net_devices { key: 'n' value { name: 'a' } } rdt { clos_id { value: 'a' } } }",
      // The removal may precede or follow the value.
      "annotations { key: 'k' value: 'b' } annotations { key: '-k' } "
      "mounts { destination: '/x' source: '/b' } mounts { destination: '-/x' } "
      "env { key: '-K' } env { key: 'K' value: 'b' } args: ['', 'b', 'c'] linux { "
      "devices { path: '/dev/x' type: 'b' } devices { path: '-/dev/x' } "
      "namespaces { type: '-pid' } namespaces { type: 'pid' path: '/b' } "
      "sysctl { key: '-s' } sysctl { key: 's' value: 'b' } "
      "net_devices { key: '-n' } net_devices { key: 'n' value { name: 'b' } } "
      "rdt { remove: true clos_id { value: 'b' } } }");
  EXPECT_THAT(merge_.adjustment(),
              Is("annotations { key: '-k' } annotations { key: 'k' value: 'b' } "
                 "mounts { destination: '-/x' } mounts { destination: '/x' source: '/b' } "
                 "env { key: '-K' } env { key: 'K' value: 'b' } args: ['b', 'c'] "
                 "linux { devices { path: '-/dev/x' } devices { path: '/dev/x' type: 'b' } "
                 "namespaces { type: '-pid' } namespaces { type: 'pid' path: '/b' } "
                 "sysctl { key: '-s' value: '' } sysctl { key: 's' value: 'b' } "
                 "net_devices { key: '-n' value {} } net_devices { key: 'n' value { name: 'b' } } "
                 "rdt { remove: true clos_id { value: 'b' } } }"));
  for (const OwnedField& owned : merge_.owned("ctr"))
    EXPECT_TRUE(owned.plugin == "20-b") << FieldName(owned.field);
}

TEST_F(AdjustmentMergeTest, ARemovalIsFinal) {
  Add("annotations { key: 'k' value: 'a' } mounts { destination: '/x' source: '/a' } "
      "env { key: 'K' value: 'a' } linux { devices { path: '/dev/x' type: 'c' } "
      "namespaces { type: 'pid' } sysctl { key: 's' value: 'a' } "
      "net_devices { key: 'n' value { name: 'a' } } rdt { clos_id { value: 'a' } } }",
      "annotations { key: '-k' } annotations { key: '-old' } "
      "mounts { destination: '-/x' } mounts { destination: '-/data' } "
      "env { key: '-K' } env { key: '-HOME' } linux { "
      "devices { path: '-/dev/x' } devices { path: '-/dev/null' } "
      "namespaces { type: '-pid' } namespaces { type: '-network' } "
      "sysctl { key: '-s' } sysctl { key: '-net.core.somaxconn' } "
      "net_devices { key: '-n' } rdt { remove: true } }");
  EXPECT_THAT(merge_.adjustment(),
              Is("annotations { key: '-k' } annotations { key: '-old' } "
                 "mounts { destination: '-/x' } mounts { destination: '-/data' } "
                 "env { key: '-K' } env { key: '-HOME' } linux { "
                 "devices { path: '-/dev/x' } devices { path: '-/dev/null' } "
                 "namespaces { type: '-pid' } namespaces { type: '-network' } "
                 "sysctl { key: '-s' } sysctl { key: '-net.core.somaxconn' } "
                 "net_devices { key: '-n' } rdt { remove: true } }"));
  const api::Container& container = merge_.container();
  EXPECT_THAT(container.annotations(), IsEmpty());
  EXPECT_THAT(container.mounts(),
              ElementsAre(Is("destination: '/logs' source: '/srv/logs' type: 'bind'")));
  EXPECT_THAT(container.env(), ElementsAre("PATH=/bin", "EMPTY="));
  EXPECT_THAT(container.linux().devices(), IsEmpty());
  EXPECT_THAT(container.linux().namespaces(), ElementsAre(Is("type: 'mount'")));
  EXPECT_THAT(container.linux().sysctl(), IsEmpty());
  EXPECT_THAT(container.linux().net_devices(), IsEmpty());
  EXPECT_FALSE(container.linux().has_rdt());
}

TEST_F(AdjustmentMergeTest, WhatOnePluginRemovedAnotherDoesNotSet) {
  for (const auto& [removal, value, field] :
       {std::tuple{"annotations { key: '-k' }", "annotations { key: 'k' }", "Annotations k"},
        {"mounts { destination: '-/x' }", "mounts { destination: '/x' }", "Mounts /x"},
        {"env { key: '-K' }", "env { key: 'K' }", "Env K"},
        {"linux { devices { path: '-/d' } }", "linux { devices { path: '/d' } }", "Devices /d"},
        {"linux { rdt { remove: true } }", "linux { rdt { clos_id {} } }", "RdtClosID"},
        {"args: ['']", "args: 'x'", "Args"}}) {
    EXPECT_THAT(Conflict(removal, value), HasSubstr(field));
  }
}

TEST_F(AdjustmentMergeTest, HooksAddUp) {
  Add("hooks { prestart { path: '/a' } }",
      "hooks { prestart { path: '/b' } poststop { path: '/b' } }", "hooks {}");
  EXPECT_THAT(merge_.adjustment(), Is("hooks { prestart { path: '/a' } prestart { path: '/b' } "
                                      "poststop { path: '/b' } }"));
  EXPECT_THAT(merge_.container().hooks(), Is("prestart { path: '/a' } prestart { path: '/b' } "
                                             "poststop { path: '/b' }"));
  EXPECT_EQ(merge_.owners().owners().at("ctr").simple().at(api::FIELD_OCI_HOOKS), "10-a,20-b");
}

TEST_F(AdjustmentMergeTest, TheNextPluginSeesTheChangedContainer) {
  Add("annotations { key: 'k' value: 'v' } args: ['wrap', 'sh'] "
      "env { key: 'HOME' value: '/a=b' } env { key: 'NEW' value: '1' } "
      "mounts { destination: '/data' source: '/a' } mounts { destination: '/new' } "
      "rlimits { type: 'RLIMIT_CORE' hard: 1 } CDI_devices { name: 'v.com/d=1' } "
      "linux { devices { path: '/dev/x' type: 'c' } namespaces { type: 'mount' path: '/m' } "
      "resources { cpu { shares { value: 0 } } memory { swap { value: 5 } } "
      "hugepage_limits { page_size: '2MB' limit: 0 } hugepage_limits { page_size: '1GB' } "
      "unified { key: 'memory.high' value: '9' } pids { limit: 3 } } "
      "cgroups_path: '/cg' oom_score_adj { value: 0 } io_priority { priority: 3 } "
      "seccomp_policy { default_action: 'X' } scheduler { nice: 4 } "
      "sysctl { key: 'net.core.somaxconn' value: '128' } "
      "net_devices { key: 'e' value { name: 'f' } } rdt { schemata { value: 'x' } } }");
  EXPECT_THAT(merge_.request().pod(), Is("id: 'pod' name: 'p'"));
  EXPECT_THAT(merge_.request().container(), Is(R"(
    id: "ctr" pod_sandbox_id: "pod" name: "web"
    annotations { key: "old" value: "1" } annotations { key: "k" value: "v" }
    args: ["wrap", "sh"]
    env: ["PATH=/bin", "HOME=/a=b", "EMPTY=", "NEW=1"]
    mounts { destination: "/data" source: "/a" }
    mounts { destination: "/logs" source: "/srv/logs" type: "bind" }
    mounts { destination: "/new" }
    hooks {}
    rlimits { type: "RLIMIT_CORE" hard: 1 }
    CDI_devices { name: "vendor.com/gpu=0" } CDI_devices { name: "v.com/d=1" }
    linux {
      namespaces { type: "mount" path: "/m" }
      namespaces { type: "network" path: "/run/netns/x" }
      devices { path: "/dev/null" type: "c" major: 1 minor: 3 }
      devices { path: "/dev/x" type: "c" }
      resources {
        memory { limit { value: 1000 } swap { value: 5 } }
        cpu { shares { value: 0 } cpus: "0-3" }
        hugepage_limits { page_size: "2MB" limit: 0 } hugepage_limits { page_size: "1GB" }
        unified { key: "memory.high" value: "9" }
        pids { limit: 3 }
      }
      cgroups_path: "/cg" oom_score_adj { value: 0 } io_priority { priority: 3 }
      seccomp_policy { default_action: "X" } scheduler { nice: 4 }
      sysctl { key: "net.core.somaxconn" value: "128" }
      net_devices { key: "e" value { name: "f" } }
      rdt { clos_id { value: "gold" } schemata { value: "x" } }
    })"));
}

TEST_F(AdjustmentMergeTest, TheMarkAloneTakesArgumentsBack) {
  Add("args: ['wrap', 'sh']", "args: ['']");
  EXPECT_THAT(merge_.adjustment(), Is(""));
  EXPECT_THAT(merge_.container().args(), ElementsAre("sh", "-c", "true"));
}

TEST_F(AdjustmentMergeTest, EnvironmentThatIsThereTwiceIsReplacedOnce) {
  AdjustmentMerge merge(Given(Make<api::Container>("id: 'c' env: ['A=1', 'B=1', 'A=2', 'C']")));
  EXPECT_THAT(merge.Add("10-a", Reply("env { key: 'A' value: '3' } env { key: '-C' }")), IsOk());
  EXPECT_THAT(merge.container().env(), ElementsAre("A=3", "B=1"));
}

TEST_F(AdjustmentMergeTest, KeysThatNothingCanHaveAreRefused) {
  for (const std::string adjust :
       {"env { key: '' }", "env { key: '-' }", "env { key: 'PATH=/evil:' }", "env { key: '-A=B' }",
        "env { key: 'A\\000B' }", "mounts { source: '/x' }", "annotations { key: '' value: 'v' }",
        "linux { devices { path: '-' } }",
        "linux { resources { unified { key: '' value: '1' } } }"}) {
    EXPECT_THAT(Try("10-a", adjust),
                Fails(StatusCode::kInvalidArgument, HasSubstr("plugin \"10-a\"")))
        << adjust;
  }
}

TEST_F(AdjustmentMergeTest, AnErrorChangesNothing) {
  Add("env { key: 'A' value: 'a' } mounts { destination: '/x' }");
  const std::string request = merge_.request().SerializeAsString();
  const std::string adjustment = merge_.adjustment().SerializeAsString();
  const std::vector<OwnedField> owned = merge_.owned("ctr");
  auto reply = Reply(
      "env { key: '-A' } env { key: 'B' } hooks { poststop { path: '/h' } } "
      "args: ['', 'x'] linux { oom_score_adj {} } mounts { destination: '/x' }");
  EXPECT_FALSE(merge_.Add("20-b", reply).ok());
  // The last part of the reply is refused.
  reply.mutable_adjust()->clear_mounts();
  *reply.add_update() =
      Make<api::ContainerUpdate>("container_id: 'other' linux { resources { cpu { cpus: '1' } } }");
  *reply.add_update() = Make<api::ContainerUpdate>("container_id: 'ctr'");
  EXPECT_THAT(merge_.Add("20-b", reply),
              Fails(StatusCode::kInvalidArgument, HasSubstr("is being created")));
  EXPECT_EQ(merge_.request().SerializeAsString(), request);
  EXPECT_EQ(merge_.adjustment().SerializeAsString(), adjustment);
  EXPECT_THAT(merge_.updates(), IsEmpty());
  EXPECT_EQ(merge_.owned("ctr"), owned);
  EXPECT_THAT(merge_.owned("other"), IsEmpty());
  reply.mutable_update()->RemoveLast();
  EXPECT_THAT(merge_.Add("20-b", reply), IsOk());
}

TEST_F(AdjustmentMergeTest, UpdatesOfOthersAreOneForEach) {
  EXPECT_THAT(merge_.Add("10-a", Make<api::CreateContainerResponse>(R"(
    update { container_id: "x" linux { resources { cpu { cpus: "1" } pids { limit: 9 }
             unified { key: "a" value: "1" } } } ignore_failure: true }
    update { container_id: "y" linux { resources { memory { limit { value: 0 } } } } }
    update { container_id: "" linux { resources { cpu { cpus: "7" } } } }
    update { container_id: "z" linux { resources { cpu {} } } })")),
              IsOk());
  EXPECT_THAT(merge_.Add("20-b", Make<api::CreateContainerResponse>(R"(
    update { container_id: "x" linux { resources { cpu { shares { value: 5 } }
             hugepage_limits { page_size: "2MB" limit: 1 } blockio_class { value: "b" } } } })")),
              IsOk());
  EXPECT_THAT(merge_.updates(), ElementsAre(Is(R"(container_id: "x" linux { resources {
                cpu { cpus: "1" shares { value: 5 } } pids { limit: 9 }
                hugepage_limits { page_size: "2MB" limit: 1 } blockio_class { value: "b" }
                unified { key: "a" value: "1" } } })"),
                                            Is(R"(container_id: "y" linux { resources {
                memory { limit { value: 0 } } } })")));
  EXPECT_THAT(merge_.Validation(), Is(R"(
    pod { id: "pod" name: "p" } adjust {} container { )" +
                                      std::string(kPristine) + R"( }
    update { container_id: "x" linux { resources { cpu { cpus: "1" shares { value: 5 } }
             pids { limit: 9 } hugepage_limits { page_size: "2MB" limit: 1 }
             blockio_class { value: "b" } unified { key: "a" value: "1" } } } }
    update { container_id: "y" linux { resources { memory { limit { value: 0 } } } } }
    owners {
      owners { key: "x" value {
        simple { key: 16 value: "20-b" } simple { key: 21 value: "10-a" }
        simple { key: 23 value: "10-a" } simple { key: 25 value: "20-b" }
        compound { key: 24 value { owners { key: "2MB" value: "20-b" } } }
        compound { key: 27 value { owners { key: "a" value: "10-a" } } } } }
      owners { key: "y" value { simple { key: 8 value: "10-a" } } }
    })"));
}

TEST_F(AdjustmentMergeTest, UpdatesOfOneFieldAreInConflict) {
  const auto update = Make<api::CreateContainerResponse>(
      "update { container_id: 'x' linux { resources { cpu { cpus: '1' } } } }");
  EXPECT_THAT(merge_.Add("10-a", update), IsOk());
  EXPECT_THAT(merge_.Add("20-b", update),
              Fails(StatusCode::kFailedPrecondition,
                    "plugins \"20-b\" and \"10-a\" both tried to set CPUSetCPUs"));
}

// A reply with `count` entries in each list, up to 4 MiB or more.
api::CreateContainerResponse LongReply(int count, std::string_view prefix) {
  api::CreateContainerResponse reply;
  api::ContainerAdjustment& adjust = *reply.mutable_adjust();
  for (int i = 0; i < count; ++i) {
    const std::string key = std::string(prefix) + std::to_string(i);
    (*adjust.mutable_annotations())[key] = "v";
    adjust.add_mounts()->set_destination(key);
    adjust.add_env()->set_key(key);
    adjust.add_rlimits()->set_type(key);
    adjust.mutable_linux()->add_devices()->set_path(key);
    adjust.mutable_linux()->mutable_resources()->add_hugepage_limits()->set_page_size(key);
    // Many small updates of one container, and one update of each of many containers.
    api::LinuxResources& small = *AddUpdate("other", reply).mutable_linux()->mutable_resources();
    small.add_hugepage_limits()->set_page_size(key);
    AddUpdate(key, reply).mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("1");
  }
  return reply;
}

// Processor time in seconds for two plugins that are merged and one that is refused.
double SecondsToMerge(int count) {
  AdjustmentMerge merge(Given(Make<api::Container>(kPristine)));
  const api::CreateContainerResponse first = LongReply(count, "a");
  api::CreateContainerResponse second = LongReply(count, "b");
  for (int i = 0; i < count; ++i)
    second.mutable_adjust()->add_env()->set_key("-a" + std::to_string(i));
  const std::clock_t start = std::clock();
  EXPECT_THAT(merge.Add("10-a", first), IsOk());
  EXPECT_THAT(merge.Add("20-b", second), IsOk());
  EXPECT_FALSE(merge.Add("30-c", second).ok());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(merge.adjustment().env_size(), 2 * count);
  EXPECT_EQ(merge.updates().size(), size_t{2} * static_cast<size_t>(count) + 1);
  return seconds;
}

// Eight times the entries would take 64 times as long if entries were searched one by one.
TEST(AdjustmentMergeTimeTest, LongRepliesTakeTimeInProportion) {
  const double few = SecondsToMerge(250);
  EXPECT_LT(SecondsToMerge(2'000), 24 * few);
}

// Parts that it does not have never change the verdict.
TEST_F(AdjustmentMergeTest, TheHostsOwnValidatorNeedsOnlyAPart) {
  const DefaultValidator validator({.reject_oci_hooks = true,
                                    .reject_unconfined_seccomp = true,
                                    .reject_namespaces = true,
                                    .reject_sysctls = true});
  const std::vector<std::string> present;
  for (const char* const adjust :
       {"", "env { key: \"A\" value: \"1\" }", "hooks { prestart { path: \"/bin/hook\" } }",
        "linux { seccomp_policy { default_action: \"SCMP_ACT_ALLOW\" } }",
        "linux { namespaces { type: \"network\" path: \"/run/netns/y\" } }",
        "linux { sysctl { key: \"a\" value: \"1\" } }"}) {
    for (const char* const profile :
         {"", "linux { seccomp_profile { profile_type: PROFILE_LOCALHOST } }"}) {
      AdjustmentMerge merge(Given(
          Make<api::Container>(R"(id: "ctr" name: "web" env: ["A=2"] )" + std::string(profile)),
          Make<api::PodSandbox>(R"(id: "pod" name: "p")")));
      ASSERT_THAT(merge.Add("10-a", Reply(adjust)), IsOk());
      const auto whole = merge.Validation();
      const api::Container outline = merge.pristine().MakeOutline();
      const auto owners = [&] { return merge.owners(); };
      EXPECT_EQ(validator.Check({.pod = merge.pristine().pod(),
                                 .container = outline,
                                 .adjustment = merge.adjustment(),
                                 .owners = owners},
                                present),
                validator.Check({.pod = whole.pod(),
                                 .container = whole.container(),
                                 .adjustment = whole.adjust(),
                                 .owners = [&] { return whole.owners(); }},
                                present))
          << adjust << profile;
    }
  }
}

constexpr std::string_view kAsRequested = "id: 'c' args: '/bin/app' env: 'A=1'";

// Counts how often its message is built.
class CountedContainer final : public PristineContainer {
 public:
  const api::PodSandbox& pod() const override { return given_.pod(); }
  const std::string& id() const override { return given_.id(); }
  api::Container Make() const override {
    ++made;
    return given_.Make();
  }
  api::Container MakeOutline() const override { return given_.MakeOutline(); }
  std::string Question() const override { return given_.Question(); }

  mutable int made = 0;

 private:
  const GivenContainer given_{nri::Make<api::Container>(kAsRequested),
                              nri::Make<api::PodSandbox>("id: 'p'")};
};

class ShownRequestTest : public testing::Test {
 protected:
  api::CreateContainerRequest Asked() {
    api::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(shown_.Question()));
    return request;
  }

  const std::shared_ptr<CountedContainer> container_ = std::make_shared<CountedContainer>();
  ShownRequest shown_{container_};
};

TEST_F(ShownRequestTest, TheFirstPluginIsAskedWithoutAMessage) {
  EXPECT_THAT(Asked(), Is("pod { id: 'p' } container { " + std::string(kAsRequested) + " }"));
  EXPECT_EQ(container_->made, 0);
}

TEST_F(ShownRequestTest, ChangesAreShownWhenSomebodyLooks) {
  shown_.Add(Make<api::ContainerAdjustment>("env { key: 'B' value: '2' }"));
  shown_.Add(Make<api::ContainerAdjustment>("args: '' args: '/wrap' args: '/bin/app'"));
  EXPECT_EQ(container_->made, 0);
  EXPECT_THAT(Asked(), Is("pod { id: 'p' } container { id: 'c' args: '/wrap' args: '/bin/app' "
                          "env: 'A=1' env: 'B=2' }"));
  // Later changes are included, too, each once.
  shown_.Add(Make<api::ContainerAdjustment>("env { key: '-A' } env { key: 'C' value: '3' }"));
  EXPECT_THAT(shown_.Message().container().env(), ElementsAre("B=2", "C=3"));
  EXPECT_THAT(Asked().container().env(), ElementsAre("B=2", "C=3"));
  EXPECT_EQ(container_->made, 1);
}

TEST_F(ShownRequestTest, LongChangesAreNotKept) {
  api::ContainerAdjustment removals;
  for (int i = 0; i < 10'000; ++i)
    removals.add_env()->set_key("-VARIABLE_" + std::to_string(i));
  shown_.Add(removals);
  EXPECT_EQ(container_->made, 1) << "they are done: there is nothing of them to keep";
  EXPECT_THAT(Asked().container().env(), ElementsAre("A=1"));
}

}  // namespace
}  // namespace resmgr::nri
