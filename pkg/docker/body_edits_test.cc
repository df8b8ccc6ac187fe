// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/body_edits.h"

#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/docker/container_body.h"
#include "pkg/docker/host_config.h"
#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

constexpr Operation kCreate = Operation::kCreateContainer;
constexpr Operation kUpdate = Operation::kUpdateContainerResources;

Adjustment Cpus(const char* cpus) {
  return Adjustment(ResourceValues{.cpus = *CpuSet::Parse(cpus)});
}

std::string Edited(Operation operation, std::string_view body, const Adjustment& adjustment) {
  const auto edited = EditBody(operation, body, adjustment);
  EXPECT_TRUE(edited.ok()) << edited.status();
  return edited.value_or("");
}

TEST(BodyEditsTest, ReplacesAndAppendsInPlace) {
  EXPECT_EQ(Edited(kCreate, R"({"X": 1.50, "HostConfig" : { "CpusetCpus": "0-7" ,"Y":1e3}})",
                   Cpus("2-3")),
            R"({"X": 1.50, "HostConfig" : { "CpusetCpus": "2-3" ,"Y":1e3}})");
  EXPECT_EQ(Edited(kCreate, R"( {"HostConfig":{}} )", Cpus("1")),
            R"( {"HostConfig":{"CpusetCpus":"1"}} )");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"a":[]} ,"b":{}})", Cpus("1")),
            R"({"HostConfig":{"a":[],"CpusetCpus":"1"} ,"b":{}})");
  EXPECT_EQ(Edited(kUpdate, R"({"CpuShares":5,"RestartPolicy":{}})",
                   Adjustment(ResourceValues{.cpus = *CpuSet::Parse("1"), .cpu_shares = 7})),
            R"({"CpuShares":7,"RestartPolicy":{},"CpusetCpus":"1"})");
}

// A HostConfig with our members alone would make dockerd ignore the members beside it.
TEST(BodyEditsTest, WhatStandsBesideHostConfigGoesIntoIt) {
  EXPECT_EQ(
      Edited(kCreate, R"({"Image":"i","CpuShares":512,"cpuquota":7,"Binds":["/a:/b"]})", Cpus("1")),
      R"({"Image":"i","CpuShares":512,"cpuquota":7,"Binds":["/a:/b"],)"
      R"("HostConfig":{"CpuShares":512,"cpuquota":7,"Binds":["/a:/b"],"CpusetCpus":"1"}})");
  EXPECT_EQ(Edited(kCreate, R"({"CpusetCpus":"0-3","NanoCpus":5,"HostConfig":null})",
                   Adjustment(ResourceValues{.cpus = *CpuSet::Parse("1"), .cpu_quota = -1})),
            R"({"CpusetCpus":"0-3","NanoCpus":5,"HostConfig":null,)"
            R"("HostConfig":{"CpusetCpus":"1","NanoCpus":0,"CpuQuota":-1}})");
  EXPECT_EQ(Edited(kCreate, R"({"CpuShares":512,"HostConfig":{}})", Cpus("1")),
            R"({"CpuShares":512,"HostConfig":{"CpusetCpus":"1"}})");
  Adjustment clears;
  clears.Wide().clear_cpus = true;
  EXPECT_EQ(Edited(kCreate, R"({"Cpuset":"2","CpusetCpus":"3","HostConfig":{}})", clears),
            R"({"Cpuset":"","CpusetCpus":"","HostConfig":{"CpusetCpus":""}})");
  EXPECT_EQ(Edited(kCreate, R"({"CpuShares":512})", Adjustment()), R"({"CpuShares":512})");
}

TEST(BodyEditsTest, WhatCountsForGoIsReplaced) {
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"cpusetcpus":"1","CpusetCpus":null}})", Cpus("2")),
            R"({"HostConfig":{"cpusetcpus":"1","CpusetCpus":"2"}})");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"CpusetCpus":"1"},"hostconfig":{}})", Cpus("2")),
            R"({"HostConfig":{"CpusetCpus":"1"},"hostconfig":{"CpusetCpus":"2"}})");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":null})", Cpus("2")),
            R"({"HostConfig":null,"HostConfig":{"CpusetCpus":"2"}})");
}

TEST(BodyEditsTest, AQuotaTakesThePlaceOfCpus) {
  const Adjustment quota(ResourceValues{.cpu_quota = -1});
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"NanoCpus":2000000000}})", quota),
            R"({"HostConfig":{"NanoCpus":0,"CpuQuota":-1}})");
}

TEST(BodyEditsTest, MountsAndDevicesAreReplacedByPath) {
  Adjustment wide;
  wide.Wide().mounts.Set("/in", {.container_path = "/in",
                                 .host_path = "/new",
                                 .read_only = true,
                                 .selinux_relabel = true,
                                 .propagation = Mount::Propagation::kHostToContainer});
  wide.Wide().mounts.Remove("/gone");
  wide.Wide().mounts.Remove("/other");
  wide.Wide().devices.Set("/dev/b",
                          {.container_path = "/dev/b", .host_path = "/dev/a", .permissions = "rw"});
  wide.Wide().devices.Remove("/dev/x");
  EXPECT_EQ(Edited(kCreate,
                   R"({"HostConfig":{"Binds":["/old:/in","v:/gone:ro","/k:/k:rw"],)"
                   R"("Mounts":[{"Type":"bind","Target":"/other"},{"Type":"tmpfs","Target":"/t"}],)"
                   R"("Devices":[{"PathInContainer":"/dev/x"},{"PathInContainer":"/dev/y"}]}})",
                   wide),
            R"({"HostConfig":{"Binds":["/k:/k:rw","/new:/in:ro,rslave,Z"],)"
            R"("Mounts":[{"Type":"tmpfs","Target":"/t"}],)"
            R"("Devices":[{"PathInContainer":"/dev/y"},)"
            R"({"PathOnHost":"/dev/a","PathInContainer":"/dev/b","CgroupPermissions":"rw"}]}})");
}

// "Binds" can express recursive mounts only.
TEST(BodyEditsTest, ANonRecursiveMountIsAnObject) {
  Adjustment wide;
  wide.Wide().mounts.Set(
      "/b", {.container_path = "/b", .host_path = "/a", .read_only = true, .non_recursive = true});
  constexpr const char* kObject =
      R"({"Type":"bind","Source":"/a","Target":"/b","ReadOnly":true,)"
      R"("BindOptions":{"Propagation":"rprivate","NonRecursive":true}})";
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"Binds":["/x:/b"]}})", wide),
            R"({"HostConfig":{"Binds":[],"Mounts":[)" + std::string(kObject) + "]}}");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"Mounts":[{"Type":"tmpfs","Target":"/t"}]}})", wide),
            R"({"HostConfig":{"Mounts":[{"Type":"tmpfs","Target":"/t"},)" + std::string(kObject) +
                R"(],"Binds":[]}})");
}

TEST(BodyEditsTest, MountsThatCameInAnEarlierHostConfigStay) {
  Adjustment wide;
  wide.Wide().mounts.Set("/b", {.container_path = "/b", .host_path = "/b"});
  EXPECT_EQ(
      Edited(kCreate, R"({"HostConfig":{"Binds":["/a:/a"]},"HostConfig":{"X":1}})", wide),
      R"({"HostConfig":{"Binds":["/a:/a"]},"HostConfig":{"X":1,"Binds":["/a:/a","/b:/b:rw"]}})");
}

TEST(BodyEditsTest, WhatCannotBeWrittenIsAnError) {
  for (const Mount& mount : {Mount{.container_path = "/a:b", .host_path = "/x"},
                             Mount{.container_path = "/a", .host_path = "volume"},
                             Mount{.container_path = "/a", .image = "i"},
                             Mount{.container_path = "/a",
                             .host_path = "/x",
                             .read_only = true,
                             .recursive_read_only = true}}) {
    Adjustment wide;
    wide.Wide().mounts.Set(mount.container_path, mount);
    EXPECT_EQ(EditBody(kCreate, "{}", wide).status().code(), StatusCode::kInvalidArgument);
  }
  Adjustment wide;
  wide.Wide().unified.Set("pids.max", "many");
  EXPECT_EQ(EditBody(kUpdate, "{}", wide).status().code(), StatusCode::kInvalidArgument);
}

TEST(BodyEditsTest, LimitsAreReplacedByName) {
  constexpr uint64_t kUnlimited = ~uint64_t{0};
  Adjustment wide;
  wide.Wide().resource_limits.Set("RLIMIT_NOFILE",
                                  {.type = "RLIMIT_NOFILE", .hard = 200, .soft = 100});
  wide.Wide().resource_limits.Set("RLIMIT_CORE",
                                  {.type = "RLIMIT_CORE", .hard = kUnlimited, .soft = kUnlimited});
  EXPECT_EQ(Edited(kCreate,
                   R"({"HostConfig" : {"X":1.50,"ulimits" : [{"Name":"NoFile","Soft":1,"Hard":1},)"
                   R"( {"Name":"rss" ,"Soft":2e1,"Y":null}, {"name":"NOFILE","Hard":3}], "Z":0}})",
                   wide),
            R"({"HostConfig" : {"X":1.50,"ulimits" : [{"Name":"rss" ,"Soft":2e1,"Y":null},)"
            R"({"Name":"nofile","Soft":100,"Hard":200},{"Name":"core","Soft":-1,"Hard":-1}],)"
            R"( "Z":0}})");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"Ulimits":null}})", wide),
            R"({"HostConfig":{"Ulimits":[{"Name":"nofile","Soft":100,"Hard":200},)"
            R"({"Name":"core","Soft":-1,"Hard":-1}]}})");
  wide.Wide().resource_limits.Set("NOFILE", {.type = "NOFILE"});
  EXPECT_EQ(EditBody(kCreate, "{}", wide).status().code(), StatusCode::kInvalidArgument);
}

TEST(BodyEditsTest, ASeccompProfileIsReplaced) {
  Adjustment wide;
  wide.Wide().seccomp_profile = R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  EXPECT_EQ(
      Edited(kCreate,
             R"({"HostConfig":{"X":1e0,"SecurityOpt":["label=a:seccomp" ,"seccomp={\"a\":1}",)"
             R"("seccomp:unconfined", "no-new-privileges","seccomp:a=b"],"Y":{ }}})",
             wide),
      R"({"HostConfig":{"X":1e0,"SecurityOpt":["label=a:seccomp","no-new-privileges",)"
      R"("seccomp:a=b","seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"],"Y":{ }}})");
  EXPECT_EQ(Edited(kCreate, "{}", wide),
            R"({"HostConfig":{"SecurityOpt":["seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"]}})");
  // dockerd does not read profile files.
  wide.Wide().seccomp_profile = "/run/profile.json";
  EXPECT_EQ(EditBody(kCreate, "{}", wide).status().code(), StatusCode::kInvalidArgument);
}

TEST(BodyEditsTest, ArgumentsStandBehindAProgram) {
  Adjustment wide;
  wide.Wide().args = {"/bin/x", "a", "b"};
  EXPECT_EQ(Edited(kCreate, R"({"Cmd":["old"]})", wide),
            R"({"Cmd":["a","b"],"Entrypoint":["/bin/x"]})");
}

TEST(BodyEditsTest, FilesOfCgroupsThatDockerHasFieldsFor) {
  Adjustment wide;
  wide.Wide().unified.Set("pids.max", "max");
  wide.Wide().unified.Set("memory.low", "4096");
  wide.Wide().unified.Set("memory.high", "8192");
  EXPECT_EQ(Edited(kUpdate, "{}", wide), R"({"PidsLimit":-1,"MemoryReservation":4096})");
  EXPECT_FALSE(DockerLeavesOut(kUpdate, {.field = Field::kUnified, .key = "pids.max"}));
  EXPECT_TRUE(DockerLeavesOut(kUpdate, {.field = Field::kUnified, .key = "memory.high"}));
}

// One entry for each field: a new one needs a rule.
TEST(BodyEditsTest, EachFieldHasARule) {
  for (int i = 0; i <= static_cast<int>(Field::kMemoryPolicy); ++i) {
    const Field field{i};
    const bool fails = field == Field::kCdiDevices || field == Field::kHooks ||
                       field == Field::kScheduler || field == Field::kIoPriority ||
                       field == Field::kMemoryPolicy;
    EXPECT_EQ(DockerHas(kCreate, field) || DockerLeavesOut(kCreate, {.field = field}), !fails)
        << ToString(field);
  }
}

TEST(BodyEditsTest, ASliceKeepsItsForm) {
  Adjustment wide;
  wide.Wide().cgroup_parent = "/a.slice/a-b.slice";
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"CgroupParent":"x-y.slice"}})", wide),
            R"({"HostConfig":{"CgroupParent":"a-b.slice"}})");
  EXPECT_EQ(Edited(kCreate, R"({"HostConfig":{"CgroupParent":"/x"}})", wide),
            R"({"HostConfig":{"CgroupParent":"/a.slice/a-b.slice"}})");
}

TEST(BodyEditsTest, AnUpdateOfAllResources) {
  ResourceChange change;
  change.resources.cpu_shares = 512;
  change.resources.cpuset_cpus = "";
  change.resources.cpuset_mems = "0";
  change.resources.memory_limit = 1024;
  change.memory_swap_limit = -1;
  change.unified = {{"pids.max", "7"}};
  EXPECT_EQ(*MakeUpdateBody(change),
            R"({"CpuShares":512,"CpusetMems":"0","Memory":1024,"MemorySwap":-1,"PidsLimit":7})");
}

TEST(BodyEditsTest, OtherStagesSetEnvironmentLabelsAndLimits) {
  Adjustment wide;
  wide.Wide().environment.Set("A", "2");
  wide.Wide().environment.Remove("B");
  wide.Wide().environment.Set("N", "x\"");
  wide.Wide().labels.Set("l", "v");
  wide.Wide().annotations.Remove("a");
  wide.Wide().memory_limit = 1024;
  wide.Wide().cgroup_parent = "/p";
  wide.Wide().clear_cpus = true;
  EXPECT_EQ(Edited(kCreate,
                   R"({"Env":["Z=\u0041","A=1","B=1"],"Labels":{"annotation.a":"1","k":"\u0041"},)"
                   R"("HostConfig":{"CpusetCpus":"1"}})",
                   wide),
            R"({"Env":["Z=\u0041","A=2","B","N=x\""],"Labels":{"k":"\u0041","l":"v"},)"
            R"("HostConfig":{"CpusetCpus":"","Memory":1024,"CgroupParent":"/p"}})");
  EXPECT_EQ(Edited(kCreate, "{}", wide),
            R"({"HostConfig":{"CpusetCpus":"","Memory":1024,"CgroupParent":"/p"},)"
            R"("Env":["A=2","B","N=x\""],"Labels":{"l":"v"}})");
}

TEST(BodyEditsTest, OurOwnUpdatesSayOnlyWhatChanges) {
  EXPECT_EQ(MakeUpdateBody({.cpus = *CpuSet::Parse("2"), .cpu_quota = 75000, .cpu_period = 50000},
                           LimitedBy::kNanoCpus),
            R"({"CpusetCpus":"2","NanoCpus":1500000000})");
  EXPECT_EQ(MakeUpdateBody({.cpu_quota = -1, .cpu_period = 100000}, LimitedBy::kNanoCpus),
            R"({"CpuQuota":-1})");
  EXPECT_EQ(MakeUpdateBody({.cpus = *CpuSet::Parse("0,2"), .cpu_quota = -1}),
            R"({"CpuQuota":-1,"CpusetCpus":"0,2"})");
}

TEST(BodyEditsTest, AFieldHasAPlaceInSomeRequestsOnly) {
  EXPECT_TRUE(DockerHas(kCreate, Field::kEnvironment));
  EXPECT_FALSE(DockerHas(kUpdate, Field::kEnvironment));
  EXPECT_TRUE(DockerHas(kUpdate, Field::kCpusetCpus));
  EXPECT_FALSE(DockerHas(kCreate, Field::kHooks));
  EXPECT_TRUE(DockerHas(kCreate, Field::kResourceLimits));
  EXPECT_FALSE(DockerHas(kUpdate, Field::kResourceLimits));
  EXPECT_TRUE(DockerHas(kCreate, Field::kSeccompProfile));
  EXPECT_FALSE(DockerHas(kUpdate, Field::kSeccompProfile));
}

// Random bodies: members in any order, case and number.
class Bodies {
 public:
  explicit Bodies(uint32_t seed) : random_(seed) {}

  std::string Create() {
    std::string body = "{";
    const int members = Below(6);
    for (int i = 0; i < members; ++i) {
      if (i > 0) body += Pick({",", " , "});
      switch (Below(4)) {
        case 0:
          body += Pick({"\"HostConfig\":", "\"hostconfig\" : "}) + HostConfig();
          break;
        case 1:
          body += Pick({"\"Env\":[\"A=1\",\"B=\\u0041\"]", "\"Env\":[]", "\"env\":null"});
          break;
        case 2:
          body += Pick({"\"Labels\":{\"a\":\"b\"}", "\"labels\":{}", "\"Labels\":null"});
          break;
        default:
          body += "\"Other" + std::to_string(i) + "\":" + Other();
      }
    }
    return body + "}";
  }
  Adjustment Change() {
    ResourceValues values;
    if (Below(2) == 0) values.cpus = *CpuSet::Parse("1,3");
    if (Below(2) == 0) values.cpu_shares = Below(1000) + 2;
    if (Below(3) == 0) values.cpu_quota = -1;
    Adjustment change(std::move(values));
    if (Below(3) == 0) change.Wide().environment.Set("A", "new");
    if (Below(3) == 0) change.Wide().labels.Set("a", "new");
    if (Below(3) == 0) change.Wide().memory_limit = Below(1000) + 1;
    return change;
  }

 private:
  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  std::string Pick(std::initializer_list<const char*> texts) {
    return *(texts.begin() + Below(static_cast<int>(texts.size())));
  }
  std::string Other() { return Pick({"1.50", "{\"x\":[1,{}]}", "\"\\u00e9\"", "null", "-0"}); }
  std::string HostConfig() {
    if (Below(5) == 0) return "null";
    std::string config = "{";
    const int members = Below(5);
    for (int i = 0; i < members; ++i) {
      if (i > 0) config += ",";
      config += Pick({"\"CpusetCpus\":\"0\"", "\"cpusetcpus\":null", "\"CpuShares\":7",
                      "\"NanoCpus\":1500000000", "\"Memory\":1e", "\"Unknown\":1.0"});
      if (config.ends_with("1e")) config.replace(config.size() - 2, 2, "4096");
    }
    return config + "}";
  }

  std::mt19937 random_;
};

// Compares the bodies' meanings, apart from the adjustment's fields.
void ExpectChanged(const std::string& before, const std::string& after, const Adjustment& change) {
  const auto was = ReadCreateBody(before);
  const auto is = ReadCreateBody(after);
  ASSERT_TRUE(was.ok());
  ASSERT_TRUE(is.ok()) << before << "\n" << after;
  LinuxResources expected = was->resources;
  const LinuxResources set = AsResources(change.values);
  // NanoCpus implies the period of these bodies; a quota replaces both.
  if (set.cpu_quota) expected.cpu_period.reset();
  expected = Merged(std::move(expected), set);
  if (change.wide() != nullptr && change.wide()->memory_limit) {
    expected.memory_limit = change.wide()->memory_limit;
  }
  EXPECT_EQ(is->resources, expected) << before << "\n" << after;
  if (change.wide() == nullptr || change.wide()->labels.empty()) {
    EXPECT_EQ(is->labels, was->labels) << after;
  } else {
    EXPECT_EQ((*is->labels.find("a")).second, "new") << after;
  }
  if (change.wide() == nullptr || change.wide()->environment.empty()) {
    EXPECT_EQ(is->details.environment, was->details.environment) << after;
  }
  // Unknown members are unchanged, byte for byte.
  ForEachMember(before, [&after](std::string_view name, std::string_view value) {
    if (!name.starts_with("\"Other")) return;
    const std::string member = std::string(name) + ":" + std::string(value);
    EXPECT_NE(after.find(member), std::string::npos) << member << "\n" << after;
  });
}

TEST(BodyEditsPropertyTest, OnlyWhatIsMeantChanges) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    Bodies bodies(seed);
    const std::string before = bodies.Create();
    const Adjustment change = bodies.Change();
    const std::string after = Edited(kCreate, before, change);
    ASSERT_TRUE(CheckJson(after).ok()) << before << "\n" << after;
    ASSERT_TRUE(nlohmann::json::accept(after)) << after;
    EXPECT_TRUE(!change.empty() || after == before) << after;
    ExpectChanged(before, after, change);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

std::string Edited(std::string_view body, std::string_view file, std::string_view value) {
  Adjustment adjustment;
  adjustment.Wide().unified.Set(std::string(file), std::string(value));
  return Edited(kCreate, body, adjustment);
}

TEST(BlockioFieldsTest, LimitsAreListsOfDevices) {
  EXPECT_EQ(Edited("{}", "io.max",
                   "7:7 rbps=50000000 wbps=max riops=max wiops=5000\n8:0 rbps=1 wbps=2 riops=max "
                   "wiops=max"),
            R"({"HostConfig":{"BlkioDeviceReadBps":[{"Path":"/dev/block/7:7","Rate":50000000},)"
            R"({"Path":"/dev/block/8:0","Rate":1}],)"
            R"("BlkioDeviceWriteBps":[{"Path":"/dev/block/8:0","Rate":2}],)"
            R"("BlkioDeviceReadIOps":[],)"
            R"("BlkioDeviceWriteIOps":[{"Path":"/dev/block/7:7","Rate":5000}]}})");
  EXPECT_EQ(
      Edited(R"({"HostConfig":{"BlkioDeviceReadBps":[{"Path":"/dev/x","Rate":1}]}})", "io.max", ""),
      R"({"HostConfig":{"BlkioDeviceReadBps":[],"BlkioDeviceWriteBps":[],)"
      R"("BlkioDeviceReadIOps":[],"BlkioDeviceWriteIOps":[]}})")
      << "the class says that there is no limit";
}

TEST(BlockioFieldsTest, AWeightIsTheOneThatRuncTurnsIntoTheFile) {
  EXPECT_EQ(Edited("{}", "io.weight", "default 708\n8:0 910"),
            R"({"HostConfig":{"BlkioWeight":80,)"
            R"("BlkioWeightDevice":[{"Path":"/dev/block/8:0","Weight":100}]}})");
  for (int64_t weight = 10; weight <= 1000; ++weight) {
    const int64_t unified = 1 + (weight - 10) * 9999 / 990;
    NewMembers members;
    ASSERT_TRUE(AddBlockio("io.weight", fmt::format("default {}", unified), members).ok());
    ASSERT_EQ(members.at(0).second, fmt::format("{}", weight));
  }
}

TEST(BlockioFieldsTest, WhatIsMalformedIsRefused) {
  for (const char* const text :
       {"x rbps=1", "8:0 rbps=-1", "8:0 speed=1", "8: rbps=1", "8:0:1 rbps"}) {
    NewMembers members;
    EXPECT_FALSE(AddBlockio("io.max", text, members).ok()) << text;
  }
  for (const char* const text : {"default", "default 0", "default 10001", "x 5", "8:0 default"}) {
    NewMembers members;
    EXPECT_FALSE(AddBlockio("io.weight", text, members).ok()) << text;
  }
}

TEST(BlockioFieldsTest, SwapCountsWithMemory) {
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000}})", "memory.swap.max", "500"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":1500}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000,"MemorySwap":7}})", "memory.swap.max", "0"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":1000}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"Memory":1000}})", "memory.swap.max", "max"),
            R"({"HostConfig":{"Memory":1000,"MemorySwap":-1}})");
  EXPECT_EQ(Edited(R"({"HostConfig":{"X":1}})", "memory.swap.max", "500"),
            R"({"HostConfig":{"X":1}})")
      << "dockerd refuses it without a limit of memory";
}

TEST(BlockioFieldsTest, OnlyACreationHasThem) {
  for (const char* const file : {"io.max", "io.weight", "memory.swap.max"}) {
    EXPECT_FALSE(DockerLeavesOut(kCreate, {.field = Field::kUnified, .key = file})) << file;
    EXPECT_TRUE(DockerLeavesOut(kUpdate, {.field = Field::kUnified, .key = file})) << file;
  }
}

}  // namespace
}  // namespace resmgr::docker
