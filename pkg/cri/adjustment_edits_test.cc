// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/adjustment_edits.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/wire.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using google::protobuf::util::MessageDifferencer;

v1::CreateContainerRequest SomeRequest() {
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id("sandbox");
  v1::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_name("app");
  config.add_command("/bin/app");
  config.add_args("-v");
  for (const auto& [key, value] : {std::pair("PATH", "/bin"), std::pair("HOME", "/root")}) {
    v1::KeyValue& env = *config.add_envs();
    env.set_key(key);
    env.set_value(value);
  }
  for (const char* path : {"/data", "/etc/hosts"}) {
    v1::Mount& mount = *config.add_mounts();
    mount.set_container_path(path);
    mount.set_host_path("/host");
  }
  config.add_devices()->set_container_path("/dev/old");
  (*config.mutable_labels())["l"] = "1";
  (*config.mutable_annotations())["a"] = "1";
  (*config.mutable_annotations())["b"] = "2";
  v1::LinuxContainerResources& resources = *config.mutable_linux()->mutable_resources();
  resources.set_cpu_shares(1024);
  v1::HugepageLimit& limit = *resources.add_hugepage_limits();
  limit.set_page_size("2MB");
  limit.set_limit(4096);
  (*resources.mutable_unified())["memory.high"] = "1";
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/podx");
  return request;
}

template <typename Message>
Message Adjusted(Operation operation, const Message& message, const Adjustment& adjustment) {
  const std::string bytes = message.SerializeAsString();
  const auto spliced = SpliceAdjustment(operation, bytes, adjustment);
  EXPECT_TRUE(spliced.ok()) << Describe(spliced.status());
  Message result;
  EXPECT_TRUE(result.ParseFromString(spliced.ok() ? spliced->ToString() : ""));
  return result;
}

Adjustment OfEveryField() {
  Adjustment adjustment(ResourceValues{.cpus = CpuSet{4, 5},
                                       .mems = NodeSet{1},
                                       .cpu_shares = 2,
                                       .cpu_quota = -1,
                                       .cpu_period = 50'000});
  WideAdjustment& wide = adjustment.Wide();
  wide.memory_limit = 1 << 20;
  wide.memory_swap_limit = 2 << 20;
  wide.oom_score_adj = -5;
  wide.hugepage_limits.Set("2MB", 8192);
  wide.hugepage_limits.Set("1GB", 1 << 30);
  wide.unified.Set("memory.low", "7");
  wide.blockio_class = "slow";
  wide.rdt_class = "gold";
  wide.environment.Set("REGION", "north");
  wide.args = {"wrapper", "/bin/app"};
  wide.mounts.Set("/cache", {.container_path = "/cache",
                             .host_path = "/var/cache",
                             .read_only = true,
                             .recursive_read_only = true,
                             .selinux_relabel = true,
                             .propagation = Mount::Propagation::kBidirectional});
  wide.devices.Set("/dev/x",
                   {.container_path = "/dev/x", .host_path = "/dev/y", .permissions = "rw"});
  wide.cdi_devices = {"vendor.com/gpu=0"};
  wide.labels.Set("m", "2");
  wide.annotations.Set("c", "3");
  wide.cgroup_parent = "/kubepods/other";
  wide.seccomp_profile = "/profile.json";
  return adjustment;
}

// Changes the resources of SomeRequest() as OfEveryField() does.
void AdjustResources(v1::LinuxContainerResources& resources) {
  resources.set_cpuset_cpus("4-5");
  resources.set_cpuset_mems("1");
  resources.set_cpu_shares(2);
  resources.set_cpu_quota(-1);
  resources.set_cpu_period(50'000);
  resources.set_memory_limit_in_bytes(1 << 20);
  resources.set_memory_swap_limit_in_bytes(2 << 20);
  resources.set_oom_score_adj(-5);
  resources.mutable_hugepage_limits(0)->set_limit(8192);
  v1::HugepageLimit& large = *resources.add_hugepage_limits();
  large.set_page_size("1GB");
  large.set_limit(1 << 30);
  (*resources.mutable_unified())["memory.low"] = "7";
}

TEST(AdjustmentEditsTest, SetsEveryFieldOfACreation) {
  v1::CreateContainerRequest expected = SomeRequest();
  v1::ContainerConfig& config = *expected.mutable_config();
  AdjustResources(*config.mutable_linux()->mutable_resources());
  v1::KeyValue& env = *config.add_envs();
  env.set_key("REGION");
  env.set_value("north");
  config.clear_command();
  config.clear_args();
  config.add_command("wrapper");
  config.add_command("/bin/app");
  v1::Mount& mount = *config.add_mounts();
  mount.set_container_path("/cache");
  mount.set_host_path("/var/cache");
  mount.set_readonly(true);
  mount.set_selinux_relabel(true);
  mount.set_propagation(v1::PROPAGATION_BIDIRECTIONAL);
  mount.set_recursive_read_only(true);
  v1::Device& device = *config.add_devices();
  device.set_container_path("/dev/x");
  device.set_host_path("/dev/y");
  device.set_permissions("rw");
  config.add_cdi_devices()->set_name("vendor.com/gpu=0");
  (*config.mutable_labels())["m"] = "2";
  (*config.mutable_annotations())["c"] = "3";
  (*config.mutable_annotations())["io.kubernetes.cri.blockio-class"] = "slow";
  (*config.mutable_annotations())["io.kubernetes.cri.rdt-class"] = "gold";
  expected.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/other");
  v1::SecurityProfile& seccomp =
      *config.mutable_linux()->mutable_security_context()->mutable_seccomp();
  seccomp.set_profile_type(v1::SecurityProfile::Localhost);
  seccomp.set_localhost_ref("/profile.json");

  const auto edited = Adjusted(Operation::kCreateContainer, SomeRequest(), OfEveryField());
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, RemovesAndReplacesEntriesInPlace) {
  Adjustment adjustment;
  WideAdjustment& wide = adjustment.Wide();
  wide.environment.Set("PATH", "/usr/bin");
  wide.environment.Remove("HOME");
  wide.mounts.Remove("/etc/hosts");
  wide.mounts.Set("/data", {.container_path = "/data", .host_path = "/other"});
  wide.devices.Remove("/dev/old");
  wide.labels.Remove("l");
  wide.annotations.Set("a", "9");
  wide.annotations.Remove("b");
  wide.hugepage_limits.Remove("2MB");
  wide.unified.Remove("memory.high");

  v1::CreateContainerRequest expected = SomeRequest();
  v1::ContainerConfig& config = *expected.mutable_config();
  config.mutable_envs()->DeleteSubrange(1, 1);
  config.mutable_envs(0)->set_value("/usr/bin");
  config.mutable_mounts()->DeleteSubrange(1, 1);
  config.mutable_mounts(0)->set_host_path("/other");
  config.clear_devices();
  config.clear_labels();
  config.clear_annotations();
  (*config.mutable_annotations())["a"] = "9";
  config.mutable_linux()->mutable_resources()->clear_hugepage_limits();
  config.mutable_linux()->mutable_resources()->clear_unified();

  const auto edited = Adjusted(Operation::kCreateContainer, SomeRequest(), adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, OnlyAppendsWhereALaterValueWins) {
  Adjustment adjustment(ResourceValues{.cpu_shares = 2});
  adjustment.Wide().environment.Set("NEW", "1");
  const std::string bytes = SomeRequest().SerializeAsString();

  const auto spliced = SpliceAdjustment(Operation::kCreateContainer, bytes, adjustment);

  ASSERT_TRUE(spliced.ok());
  EXPECT_TRUE(spliced->ToString().starts_with(bytes));
}

TEST(AdjustmentEditsTest, ASeccompProfileTakesThePlaceOfBothForms) {
  v1::CreateContainerRequest request = SomeRequest();
  auto& context = *request.mutable_config()->mutable_linux()->mutable_security_context();
  context.set_privileged(true);
  context.set_seccomp_profile_path("runtime/default");
  context.mutable_seccomp()->set_profile_type(v1::SecurityProfile::Localhost);
  context.mutable_seccomp()->set_localhost_ref("/old.json");
  Adjustment adjustment;
  adjustment.Wide().seccomp_profile = "/new.json";
  v1::CreateContainerRequest expected = request;
  auto& changed = *expected.mutable_config()->mutable_linux()->mutable_security_context();
  changed.clear_seccomp_profile_path();
  changed.mutable_seccomp()->set_localhost_ref("/new.json");

  const auto edited = Adjusted(Operation::kCreateContainer, request, adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, EditsAnUpdate) {
  v1::UpdateContainerResourcesRequest request;
  request.set_container_id("id");
  request.mutable_linux()->set_cpu_shares(1);
  (*request.mutable_annotations())["a"] = "1";
  Adjustment adjustment(ResourceValues{.cpus = CpuSet{3}});
  adjustment.Wide().memory_limit = -1;
  adjustment.Wide().annotations.Remove("a");
  v1::UpdateContainerResourcesRequest expected = request;
  expected.mutable_linux()->set_cpuset_cpus("3");
  expected.mutable_linux()->set_memory_limit_in_bytes(-1);
  expected.clear_annotations();

  const auto edited = Adjusted(Operation::kUpdateContainerResources, request, adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, AFileTakesThePlaceOfTheRequestsField) {
  v1::CreateContainerRequest request = SomeRequest();
  v1::LinuxContainerResources& resources =
      *request.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpu_quota(7);
  resources.set_cpu_period(8);
  resources.set_memory_swap_limit_in_bytes(9);
  (*resources.mutable_unified())["cpuset.cpus"] = "8-9";
  Adjustment adjustment;
  adjustment.Wide().unified.Set("cpu.weight", "3");
  adjustment.Wide().unified.Set("memory.swap.max", "0");
  adjustment.Wide().unified.Set("hugetlb.2MB.max", "max");
  adjustment.Wide().unified.Remove("cpuset.cpus");
  v1::CreateContainerRequest expected = request;
  v1::LinuxContainerResources& changed =
      *expected.mutable_config()->mutable_linux()->mutable_resources();
  changed.clear_cpu_shares();
  changed.clear_memory_swap_limit_in_bytes();
  changed.clear_hugepage_limits();
  changed.mutable_unified()->erase("cpuset.cpus");
  (*changed.mutable_unified())["cpu.weight"] = "3";
  (*changed.mutable_unified())["memory.swap.max"] = "0";
  (*changed.mutable_unified())["hugetlb.2MB.max"] = "max";

  const auto edited = Adjusted(Operation::kCreateContainer, request, adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

// The bytes of LinuxContainerResources with lists, with a number in an overlong encoding, a field
// of a later version and repeated lists in between.
std::string RawResources(bool with_cpus, bool with_mems) {
  std::string bytes("\x18\x81\x00", 3);  // cpu_shares
  FieldWriter out(bytes);
  if (with_cpus) out.Bytes(6, "0-3");
  out.Bytes(1000, "of a later version");
  if (with_mems) out.Bytes(7, "0");
  if (with_cpus) out.Bytes(6, "7");
  out.Number(5, 100);
  return bytes;
}

std::string RawCreation(bool with_cpus, bool with_mems) {
  std::string bytes;
  FieldWriter out(bytes);
  out.Bytes(1, "sandbox");
  for (int i = 0; i < 2; ++i) {  // a parser merges the two
    const size_t config = out.Begin(2);
    const size_t linux = out.Begin(15);
    out.Bytes(1, RawResources(with_cpus, with_mems));
    out.End(linux);
    out.End(config);
  }
  out.Bytes(2000, "of a later version");
  return bytes;
}

std::string RawUpdate(bool with_cpus, bool with_mems) {
  std::string bytes;
  FieldWriter out(bytes);
  out.Bytes(2, RawResources(with_cpus, with_mems));
  out.Bytes(1, "id");
  out.Bytes(2000, "of a later version");
  return bytes;
}

TEST(AdjustmentEditsTest, ClearsListsAndKeepsEveryOtherByte) {
  for (const bool clear_cpus : {false, true}) {
    for (const bool clear_mems : {false, true}) {
      Adjustment adjustment;
      adjustment.Wide().clear_cpus = clear_cpus;
      adjustment.Wide().clear_mems = clear_mems;
      const std::string creation = RawCreation(true, true);
      const auto created = SpliceAdjustment(Operation::kCreateContainer, creation, adjustment);
      ASSERT_TRUE(created.ok());
      EXPECT_EQ(created->ToString(), RawCreation(!clear_cpus, !clear_mems));
      const std::string update = RawUpdate(true, true);
      const auto updated =
          SpliceAdjustment(Operation::kUpdateContainerResources, update, adjustment);
      ASSERT_TRUE(updated.ok());
      EXPECT_EQ(updated->ToString(), RawUpdate(!clear_cpus, !clear_mems));
    }
  }
}

TEST(AdjustmentEditsTest, ClearingWhatIsNotThereChangesNoByte) {
  Adjustment adjustment;
  adjustment.Wide().clear_cpus = adjustment.Wide().clear_mems = true;
  const std::string creation = SomeRequest().SerializeAsString();

  const auto spliced = SpliceAdjustment(Operation::kCreateContainer, creation, adjustment);

  ASSERT_TRUE(spliced.ok());
  EXPECT_EQ(spliced->ToString(), creation);
  EXPECT_EQ(spliced->suffix(), "");
}

TEST(AdjustmentEditsTest, AListIsSetBesideOneThatIsCleared) {
  v1::CreateContainerRequest request = SomeRequest();
  auto& resources = *request.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpuset_cpus("0-3");
  resources.set_cpuset_mems("0");
  Adjustment adjustment(ResourceValues{.mems = NodeSet{1}});
  adjustment.Wide().clear_cpus = true;
  v1::CreateContainerRequest expected = request;
  auto& wanted = *expected.mutable_config()->mutable_linux()->mutable_resources();
  wanted.clear_cpuset_cpus();
  wanted.set_cpuset_mems("1");

  const auto edited = Adjusted(Operation::kCreateContainer, request, adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, EditsAPodSandbox) {
  v1::RunPodSandboxRequest request;
  request.set_runtime_handler("kata");
  (*request.mutable_config()->mutable_labels())["l"] = "1";
  Adjustment adjustment;
  adjustment.Wide().labels.Set("l", "2");
  adjustment.Wide().annotations.Set("a", "1");
  adjustment.Wide().cgroup_parent = "/kubepods/other";
  v1::RunPodSandboxRequest expected = request;
  (*expected.mutable_config()->mutable_labels())["l"] = "2";
  (*expected.mutable_config()->mutable_annotations())["a"] = "1";
  expected.mutable_config()->mutable_linux()->set_cgroup_parent("/kubepods/other");

  const auto edited = Adjusted(Operation::kRunPodSandbox, request, adjustment);
  EXPECT_TRUE(MessageDifferencer::Equals(edited, expected)) << edited.DebugString();
}

TEST(AdjustmentEditsTest, KnowsWhatTheCriHasNoPlaceFor) {
  EXPECT_FALSE(CriHas(Operation::kCreateContainer, Field::kHooks));
  EXPECT_FALSE(CriHas(Operation::kCreateContainer, Field::kResourceLimits));
  for (const Field field : {Field::kScheduler, Field::kIoPriority, Field::kMemoryPolicy})
    EXPECT_FALSE(CriHas(Operation::kCreateContainer, field)) << ToString(field);
  EXPECT_TRUE(CriHas(Operation::kCreateContainer, Field::kMounts));
  EXPECT_TRUE(CriHas(Operation::kUpdateContainerResources, Field::kUnified));
  EXPECT_FALSE(CriHas(Operation::kUpdateContainerResources, Field::kMounts));
  EXPECT_TRUE(CriHas(Operation::kRunPodSandbox, Field::kLabels));
  EXPECT_FALSE(CriHas(Operation::kRunPodSandbox, Field::kCpuShares));
  EXPECT_FALSE(CriHas(Operation::kStartContainer, Field::kAnnotations));
}

TEST(AdjustmentEditsTest, AnEditOfABrokenPartFails) {
  std::string config;
  // A variable A whose value is truncated.
  FieldWriter(config).Bytes(6,
                            "\x0a\x01"
                            "A\x12\x7f");
  std::string bytes;
  FieldWriter(bytes).Bytes(2, config);
  Adjustment adjustment;
  adjustment.Wide().environment.Set("A", "1");

  EXPECT_EQ(SpliceAdjustment(Operation::kCreateContainer, bytes, adjustment).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(AdjustmentSuffixTest, CreationsOneAfterTheOtherGetTheirOwnSuffixEach) {
  const ResourceValues shared = {.cpus = CpuSet{0, 1, 2, 3}};
  const ResourceValues more = {.cpus = CpuSet{0, 1, 2, 3}, .cpu_quota = -1};
  const ResourceValues exclusive = {.cpus = CpuSet{4, 5}, .mems = NodeSet{1}};
  AdjustmentSuffix suffix;
  for (const ResourceValues& values : {ResourceValues(), shared, shared, more, shared, exclusive,
                                       ResourceValues(), exclusive, shared}) {
    std::string expected;
    AppendCreateAdjustment(values, expected);
    EXPECT_EQ(suffix.For(Operation::kCreateContainer, values), expected);
  }
}

TEST(AdjustmentSuffixTest, IsWhatTheOperationTakes) {
  AdjustmentSuffix suffix;
  const ResourceValues values{.cpus = CpuSet{1}};
  std::string create;
  AppendCreateAdjustment(values, create);
  std::string update;
  AppendUpdateAdjustment(values, update);

  EXPECT_EQ(suffix.For(Operation::kCreateContainer, values), create);
  EXPECT_EQ(suffix.For(Operation::kUpdateContainerResources, values), update);
  EXPECT_EQ(suffix.For(Operation::kStartContainer, values), "");
}

}  // namespace
}  // namespace resmgr
