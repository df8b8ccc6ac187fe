// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/adjustment_mapping.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/mapping/mapped_parts.h"
#include "pkg/nri/testing/messages.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Must;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// A container that is created, and a mapping of adjustments of it.
class AdjustmentMappingTest : public testing::Test {
 protected:
  AdjustmentMappingTest() {
    details_.environment = {{"MINE", "1"}};
    details_.mounts = {{.container_path = "/data", .host_path = "/host"}};
    details_.devices = {{.container_path = "/dev/mine"}};
    details_.cdi_devices = {"vendor/a=0"};
    api::Container pristine;
    pristine.add_args("/bin/app");
    pristine.add_env("MINE=1");
    pristine.add_env("OF_IMAGE=1");
    given_ = Given(pristine);
  }

  MappingContext context() const {
    return {.details = details_,
            .pristine = *given_,
            .owners = owners_,
            .policy = policy_,
            .traits = traits_};
  }
  StatusOr<MappedAdjustment> Map(std::string_view text) const {
    return MapAdjustment(Make<api::ContainerAdjustment>(text), context());
  }
  // The refusal's message, "" if it is not refused.
  std::string Refusal(std::string_view text) const {
    const auto mapped = Map(text);
    return mapped.ok() ? "" : Describe(mapped.status());
  }
  std::vector<std::string> Warnings(std::string_view text) const {
    const auto mapped = Map(text);
    EXPECT_TRUE(mapped.ok()) << Describe(mapped.status());
    return mapped.ok() ? mapped->warnings : std::vector<std::string>();
  }

  ContainerDetails details_;
  std::shared_ptr<const PristineContainer> given_;
  std::vector<OwnedField> owners_;
  UnsupportedPolicy policy_;
  RuntimeTraits traits_;
};

TEST_F(AdjustmentMappingTest, NothingIsNoEdit) {
  const auto mapped = Must(Map("linux { resources { cpu {} memory {} } rdt {} } hooks {}"));
  EXPECT_TRUE(mapped.adjustment.empty());
  EXPECT_TRUE(mapped.host_files.empty());
  EXPECT_THAT(mapped.warnings, IsEmpty());
}

TEST_F(AdjustmentMappingTest, WhatTheCriCannotSetIsRefusedByName) {
  owners_ = {{.field = api::FIELD_OCI_HOOKS, .plugin = "10-a,20-b"},
             {.field = api::FIELD_RLIMITS, .key = "RLIMIT_CORE", .plugin = "20-b"}};

  EXPECT_EQ(
      Refusal("hooks { poststop { path: '/bin/hook' } }"),
      "failed precondition: plugin \"10-a,20-b\" wants to set OciHooks /bin/hook: the CRI has "
      "no field for it");
  EXPECT_EQ(Refusal("rlimits { type: 'RLIMIT_CORE' }"),
            "failed precondition: plugin \"20-b\" wants to set Rlimits RLIMIT_CORE: the CRI has no "
            "field for it");
}

TEST_F(AdjustmentMappingTest, EachFieldHasItsDefault) {
  for (const char* const text : {
           "hooks { prestart { path: '/h' } }",
           "hooks { create_runtime { path: '/h' } }",
           "hooks { create_container { path: '/h' } }",
           "hooks { start_container { path: '/h' } }",
           "hooks { poststart { path: '/h' } }",
           "rlimits { type: 'RLIMIT_CORE' }",
           "mounts { destination: '/m' source: 'tmpfs' type: 'tmpfs' }",
           "linux { devices { path: '/dev/x' type: 'p' } }",
           "linux { cgroups_path: '/c' }",
           "linux { namespaces { type: 'network' } }",
           "linux { sysctl { key: 'a' value: '1' } }",
           "linux { net_devices { key: 'eth1' value { name: 'eth0' } } }",
       }) {
    EXPECT_THAT(Refusal(text), HasSubstr("failed precondition: a plugin wants to set")) << text;
  }
  for (const char* const text : {
           "env { key: '-OF_IMAGE' }",
           "mounts { destination: '-/proc' }",
           "linux { devices { path: '-/dev/null' } }",
           "linux { resources { devices { allow: true } } }",
           "linux { resources { cpu { realtime_runtime {} } } }",
           "linux { resources { cpu { realtime_period {} } } }",
           "linux { resources { memory { kernel {} } } }",
           "linux { resources { memory { swappiness {} } } }",
           "linux { rdt { schemata {} } }",
           "linux { rdt { enable_monitoring {} } }",
           "linux { rdt { remove: true } }",
           "linux { io_priority {} }",
           "linux { scheduler {} }",
           "linux { memory_policy {} }",
           "linux { namespaces { type: '-network' } }",
           "linux { sysctl { key: '-a' value: '' } }",
       }) {
    const auto mapped = Map(text);
    ASSERT_TRUE(mapped.ok()) << text << Describe(mapped.status());
    EXPECT_THAT(mapped->warnings, SizeIs(1)) << text;
    EXPECT_TRUE(mapped->adjustment.empty()) << text;
  }
}

TEST_F(AdjustmentMappingTest, ThePolicyDecidesOfAField) {
  policy_.Set(api::FIELD_OCI_HOOKS, FailurePolicy::kIgnore);
  policy_.Set(api::FIELD_MOUNTS, FailurePolicy::kFail);

  EXPECT_THAT(Warnings("hooks { poststop { path: '/bin/hook' } }"),
              ElementsAre("a plugin wants to set OciHooks /bin/hook: the CRI has no field for it"));
  EXPECT_THAT(Refusal("mounts { destination: '-/proc' }"), HasSubstr("remove Mounts /proc"));
}

TEST_F(AdjustmentMappingTest, WarningsAreBounded) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += "mounts { destination: '-/m" + std::to_string(i) + "\\n' }";
  const auto mapped = Must(Map(text));
  EXPECT_THAT(mapped.warnings, SizeIs(MappedAdjustment::kMostWarnings));
  EXPECT_THAT(mapped.warnings[0], HasSubstr("/m0\\x0a"));
}

TEST_F(AdjustmentMappingTest, TheKubeletsAnnotationsAreNotTouched) {
  owners_ = {
      {.field = api::FIELD_ANNOTATIONS, .key = "io.kubernetes.container.hash", .plugin = "10-a"}};
  for (const char* const key : {"io.kubernetes.container.hash", "-io.kubernetes.container.hash"}) {
    EXPECT_THAT(Refusal("annotations { key: '" + std::string(key) + "' value: '' }"),
                HasSubstr("invalid argument: plugin \"10-a\" wants to change Annotations "
                          "io.kubernetes.container.hash"));
  }
}

TEST_F(AdjustmentMappingTest, AnnotationsAreBounded) {
  const std::string text(200 * 1024, 'x');
  const std::string one = "annotations { key: 'a' value: '" + text + "' }";
  EXPECT_EQ(Refusal(one), "");
  EXPECT_THAT(Refusal(one + "annotations { key: 'b' value: '" + text + "' }"),
              HasSubstr("256 KiB"));
}

TEST_F(AdjustmentMappingTest, ArgumentsNeedTheFormerOnes) {
  EXPECT_THAT(Map("args: 'wrap' args: '/bin/app'")->adjustment.wide()->args,
              testing::Optional(ElementsAre("wrap", "/bin/app")));
  EXPECT_THAT(Refusal("args: ''"), HasSubstr("no program"));
  given_ = Given(api::Container());
  EXPECT_THAT(Refusal("args: 'wrap'"), HasSubstr("not known"));
}

TEST_F(AdjustmentMappingTest, AddedAndRemovedIsReplaced) {
  const auto mapped = Must(Map(R"(
    annotations { key: "-a" value: "" } annotations { key: "a" value: "2" }
    env { key: "-MINE" } env { key: "MINE" value: "2" }
    env { key: "OF_IMAGE" value: "2" } env { key: "-OF_IMAGE" }
    mounts { destination: "-/data" }
    mounts { destination: "/data" source: "/new" type: "bind" options: "rbind" })"));
  EXPECT_THAT(mapped.warnings, IsEmpty());
  const WideAdjustment& wide = *mapped.adjustment.wide();
  EXPECT_EQ(wide.annotations.Find("a")->value, "2");
  EXPECT_EQ(wide.environment.Find("MINE")->value, "2");
  EXPECT_EQ(wide.environment.Find("OF_IMAGE")->value, "2");
  EXPECT_EQ(wide.mounts.Find("/data")->value->host_path, "/new");
}

TEST_F(AdjustmentMappingTest, CdiDevicesGoAsTheRuntimeHasThem) {
  constexpr const char* kTwo =
      "CDI_devices { name: 'vendor/a=0' } CDI_devices { name: 'vendor/b=0' } "
      "CDI_devices { name: 'vendor/c=0' }";
  EXPECT_THAT(Map(kTwo)->adjustment.wide()->cdi_devices, ElementsAre("vendor/b=0", "vendor/c=0"));
  traits_.cdi = RuntimeTraits::Cdi::kAnnotation;
  EXPECT_EQ(Map(kTwo)->adjustment.wide()->annotations.Find("cdi.k8s.io/nri-plugins")->value,
            "vendor/b=0,vendor/c=0");
  traits_.cdi = RuntimeTraits::Cdi::kNone;
  EXPECT_THAT(Refusal(kTwo), HasSubstr("CdiDevices vendor/b=0: the runtime does not have them"));
}

TEST_F(AdjustmentMappingTest, ResourcesThatCannotBeReadNameThePlugin) {
  owners_ = {{.field = api::FIELD_CPUSET_CPUS, .plugin = "10-a"}};
  EXPECT_THAT(Refusal("linux { resources { cpu { cpus: '0-x' } } }"),
              HasSubstr("invalid argument: plugin \"10-a\" wants CPU resources: cpus"));
}

// A plugin replaces a former plugin's device by its removal and the new one.
TEST_F(AdjustmentMappingTest, AReplacedDeviceIsNotMissing) {
  policy_.Set(api::FIELD_DEVICES, FailurePolicy::kFail);
  constexpr std::string_view kReplaced = R"(linux {
    devices { path: "-/dev/x" }
    devices { path: "/dev/x" type: "c" major: 1 minor: 3 } })";
  EXPECT_EQ(Refusal(kReplaced), "");
  EXPECT_THAT(Warnings(kReplaced), IsEmpty());
  EXPECT_THAT(Map(kReplaced)->host_files.devices, SizeIs(1));
}

TEST_F(AdjustmentMappingTest, DevicesAreThoseOfTheNode) {
  auto mapped = Must(Map(R"(linux {
    devices { path: "/dev/x" type: "c" major: 1 minor: 3 }
    devices { path: "/dev/y" type: "b" major: 8 minor: 0 file_mode { value: 288 } }
    devices { path: "-/dev/mine" } })"));
  ASSERT_THAT(mapped.host_files.devices, SizeIs(2));
  EXPECT_EQ(mapped.adjustment.wide()->devices.Find("/dev/mine")->value, std::nullopt);

  const Status added = AddHostFiles(
      {.devices = {{.path = "/dev/null", .mode = 0666}, {.path = "/dev/sda", .mode = 0440}}},
      context(), mapped);

  EXPECT_TRUE(added.ok());
  EXPECT_TRUE(mapped.host_files.empty());
  const auto& devices = mapped.adjustment.wide()->devices;
  EXPECT_EQ(devices.Find("/dev/x")->value,
            (Device{.container_path = "/dev/x", .host_path = "/dev/null", .permissions = "rw"}));
  EXPECT_EQ(devices.Find("/dev/y")->value,
            (Device{.container_path = "/dev/y", .host_path = "/dev/sda", .permissions = "rm"}));
}

TEST_F(AdjustmentMappingTest, ADeviceThatTheNodeLacksIsRefusedOrLeftOut) {
  owners_ = {{.field = api::FIELD_DEVICES, .key = "/dev/x", .plugin = "10-a"}};
  constexpr const char* kDevice =
      "linux { devices { path: '/dev/x' type: 'c' major: 1 minor: 3 } }";
  auto mapped = Map(kDevice);
  EXPECT_EQ(
      Describe(AddHostFiles({.devices = {{}}}, context(), *mapped)),
      "failed precondition: plugin \"10-a\" wants to set Devices /dev/x: the node has no file "
      "of the character device 1:3");
  policy_.Set(api::FIELD_DEVICES, FailurePolicy::kIgnore);
  mapped = Map(kDevice);
  EXPECT_TRUE(AddHostFiles({.devices = {{}}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, SizeIs(1));
  EXPECT_TRUE(mapped->adjustment.empty());
}

constexpr const char* kBindAlone =
    "mounts { destination: '/m' source: '/h' options: 'bind' options: 'ro' }";

// The CRI has recursive mounts only: further mounts below the path would be writable.
TEST_F(AdjustmentMappingTest, AReadOnlyMountIsNotWritableFurtherBelow) {
  owners_ = {{.field = api::FIELD_MOUNTS, .key = "/m", .plugin = "10-a"}};
  auto mapped = Map(kBindAlone);
  ASSERT_TRUE(mapped.ok());
  ASSERT_THAT(mapped->host_files.mounts, SizeIs(1));
  EXPECT_EQ(
      Describe(AddHostFiles({.below = {"/h/sub"}}, context(), *mapped)),
      "failed precondition: plugin \"10-a\" wants to set Mounts /m: by the CRI the container also "
      "gets what is mounted below it, as /h/sub, writable");

  mapped = Map(kBindAlone);
  EXPECT_THAT(Describe(AddHostFiles({.below = {"/h"}}, context(), *mapped)),
              HasSubstr("which may be anything, since it is not known where the path leads"));

  policy_.Set(api::FIELD_MOUNTS, FailurePolicy::kIgnore);
  mapped = Map(kBindAlone);
  EXPECT_TRUE(AddHostFiles({.below = {"/h/sub"}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, SizeIs(1));
  EXPECT_TRUE(mapped->adjustment.empty()) << "left out means that it is not there at all";

  mapped = Map(kBindAlone);
  EXPECT_TRUE(AddHostFiles({.below = {""}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, IsEmpty());
  EXPECT_EQ(mapped->adjustment.wide()->mounts.Find("/m")->value,
            (Mount{.container_path = "/m", .host_path = "/h", .read_only = true}));
}

TEST_F(AdjustmentMappingTest, AReadOnlyMountIsSoAsAWholeWhereTheRuntimeHasThat) {
  traits_.announced_recursive_read_only = true;
  for (const char* const below : {"", "/h/sub"}) {
    auto mapped = Map(kBindAlone);
    EXPECT_TRUE(AddHostFiles({.below = {below}}, context(), *mapped).ok());
    const Mount& mount = *mapped->adjustment.wide()->mounts.Find("/m")->value;
    EXPECT_TRUE(mount.read_only && mount.recursive_read_only) << below;
    EXPECT_EQ(mapped->warnings.size(), *below == 0 ? 0U : 1U);
  }
  // The CRI has such mounts with private propagation only.
  auto mapped = Map(
      "mounts { destination: '/m' source: '/h' options: ['bind', 'ro', 'rslave'] type: 'bind' }");
  EXPECT_EQ(AddHostFiles({.below = {"/h/sub"}}, context(), *mapped).code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(AdjustmentMappingTest, AWritableMountWithOthersBelowIsAWarning) {
  auto mapped = Map("mounts { destination: '/m' source: '/h' options: 'bind' }");
  EXPECT_TRUE(AddHostFiles({.below = {"/h/sub"}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, ElementsAre(HasSubstr("as /h/sub, writable")));
  EXPECT_FALSE(mapped->adjustment.wide()->mounts.Find("/m")->value->non_recursive);
}

TEST_F(AdjustmentMappingTest, ARecursiveMountIsAsThePluginWantsIt) {
  const auto mapped =
      Must(Map("mounts { destination: '/m' source: '/h' options: ['rbind', 'ro'] }"));
  EXPECT_TRUE(mapped.host_files.empty());
  EXPECT_EQ(mapped.adjustment.wide()->mounts.Find("/m")->value,
            (Mount{.container_path = "/m", .host_path = "/h", .read_only = true}));
}

TEST_F(AdjustmentMappingTest, TheDockerApiHasNonRecursiveMounts) {
  traits_ = TraitsOf("docker", "20.10.24", false);
  auto mapped = Map(kBindAlone);
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE(mapped->host_files.empty());
  EXPECT_TRUE(mapped->adjustment.wide()->mounts.Find("/m")->value->non_recursive);
  // With a label, or before 19.03, Docker has no such mount.
  for (const char* const version : {"20.10.24", "18.09.1"}) {
    traits_ = TraitsOf("docker", version, false);
    mapped = Map("mounts { destination: '/m' source: '/h' options: ['bind', 'ro', 'relabel'] }");
    EXPECT_EQ(AddHostFiles({.below = {"/h/sub"}}, context(), *mapped).code(),
              StatusCode::kFailedPrecondition)
        << version;
  }
}

TEST_F(AdjustmentMappingTest, AClassOfRdtIsLeftOutWhereThereIsNone) {
  owners_ = {{.field = api::FIELD_RDT_CLOS_ID, .plugin = "10-a"}};
  constexpr const char* kClass = "linux { rdt { clos_id { value: 'gold' } } }";
  auto mapped = Map(kClass);
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE(mapped->host_files.rdt);
  EXPECT_TRUE(AddHostFiles({.rdt = true}, context(), *mapped).ok());
  EXPECT_EQ(mapped->adjustment.wide()->rdt_class, "gold");

  mapped = Map(kClass);
  EXPECT_TRUE(AddHostFiles({.rdt = false}, context(), *mapped).ok());
  EXPECT_TRUE(mapped->adjustment.empty());
  EXPECT_THAT(mapped->warnings,
              ElementsAre("plugin \"10-a\" wants to set RdtClosID: the node has no RDT: resctrl is "
                          "not mounted"));
  traits_.without_rdt = true;
  for (const char* const text : {kClass, "linux { resources { rdt_class { value: 'gold' } } }"}) {
    mapped = Map(text);
    ASSERT_TRUE(mapped.ok());
    EXPECT_TRUE(mapped->adjustment.empty()) << text;
    EXPECT_TRUE(mapped->host_files.empty()) << text;
    EXPECT_THAT(mapped->warnings,
                ElementsAre(HasSubstr("the runtime has said that RDT is disabled")));
  }
}

// A runtime copies mode and owner from the node's file.
TEST_F(AdjustmentMappingTest, ADeviceWithAnotherModeOrOwnerIsRefusedOrToldOf) {
  owners_ = {{.field = api::FIELD_DEVICES, .key = "/dev/x", .plugin = "10-a"}};
  constexpr const char* kDevice =
      "linux { devices { path: '/dev/x' type: 'c' major: 1 minor: 3 file_mode { value: 416 } "
      "uid { value: 1 } gid { value: 2 } } }";
  const FoundDevice same{.path = "/dev/null", .mode = 0640, .uid = 1, .gid = 2};
  const FoundDevice other{.path = "/dev/null", .mode = 0666};
  auto mapped = Map(kDevice);
  EXPECT_EQ(Describe(AddHostFiles({.devices = {other}}, context(), *mapped)),
            "failed precondition: plugin \"10-a\" wants to set Devices /dev/x: by the CRI it is a "
            "copy of /dev/null, with mode 0666 instead of 0640, user 0 instead of 1, group 0 "
            "instead of 2");
  mapped = Map(kDevice);
  EXPECT_TRUE(AddHostFiles({.devices = {same}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, IsEmpty());
  policy_.Set(api::FIELD_DEVICES, FailurePolicy::kIgnore);
  mapped = Map(kDevice);
  EXPECT_TRUE(AddHostFiles({.devices = {other}}, context(), *mapped).ok());
  EXPECT_THAT(mapped->warnings, SizeIs(1));
  EXPECT_EQ(mapped->adjustment.wide()->devices.Find("/dev/x")->value->host_path, "/dev/null");
}

TEST_F(AdjustmentMappingTest, ASeccompPolicyBecomesAFile) {
  auto mapped = Must(Map("linux { seccomp_policy { default_action: 'SCMP_ACT_ALLOW' } }"));
  EXPECT_EQ(mapped.host_files.seccomp_policy, R"({"defaultAction":"SCMP_ACT_ALLOW"})");
  EXPECT_TRUE(AddHostFiles({.seccomp_profile = "/run/p.json"}, context(), mapped).ok());
  EXPECT_EQ(mapped.adjustment.wide()->seccomp_profile, "/run/p.json");
}

TEST_F(AdjustmentMappingTest, ByTheDockerApiASeccompPolicyIsInTheRequest) {
  traits_ = TraitsOf("docker", "20.10.24+dfsg1", false);
  owners_ = {{.field = api::FIELD_SECCOMP_POLICY, .plugin = "10-a"}};
  constexpr const char* kPlain = "linux { seccomp_policy { default_action: 'SCMP_ACT_ALLOW' } }";
  const auto mapped = Must(Map(kPlain));
  EXPECT_TRUE(mapped.host_files.empty());
  EXPECT_EQ(mapped.adjustment.wide()->seccomp_profile, R"({"defaultAction":"SCMP_ACT_ALLOW"})");
  // Parts that the runtime ignores are not dropped in silence.
  for (const char* const member : {"flags: 'SECCOMP_FILTER_FLAG_LOG'", "default_errno { value: 1 }",
                                   "listener_path: '/l'", "listener_metadata: 'm'"}) {
    const std::string text = "linux { seccomp_policy { " + std::string(member) + " } }";
    traits_ = TraitsOf("docker", "20.10.24+dfsg1", false);
    EXPECT_EQ(
        Refusal(text),
        "failed precondition: plugin \"10-a\" wants to set SeccompPolicy: this version of the "
        "runtime reads neither flags nor a default error number nor a listener of it");
    traits_ = TraitsOf("docker", "23.0.0", false);
    EXPECT_EQ(Refusal(text), "");
  }
  details_.security.privileged = true;
  EXPECT_EQ(Refusal(kPlain), "");
  traits_ = TraitsOf("docker", "20.10.24+dfsg1", false);
  EXPECT_THAT(Refusal(kPlain), HasSubstr("a privileged container runs without one"));
}

TEST_F(AdjustmentMappingTest, TheDockerApiHasLimitsAndUnsetsVariables) {
  traits_ = TraitsOf("docker", "20.10.24", false);
  const auto mapped =
      Must(Map("rlimits { type: 'RLIMIT_NOFILE' hard: 200 soft: 100 } env { key: '-MINE' } "
               "env { key: '-OF_IMAGE' } env { key: '-OF_IMAGE_UNKNOWN' }"));
  EXPECT_THAT(mapped.warnings, IsEmpty());
  const WideAdjustment& wide = *mapped.adjustment.wide();
  EXPECT_EQ(wide.resource_limits.Find("RLIMIT_NOFILE")->value,
            (ResourceLimit{.type = "RLIMIT_NOFILE", .hard = 200, .soft = 100}));
  for (const char* const name : {"MINE", "OF_IMAGE", "OF_IMAGE_UNKNOWN"}) {
    ASSERT_NE(wide.environment.Find(name), nullptr) << name;
    EXPECT_FALSE(wide.environment.Find(name)->value) << name;
  }
  for (const char* const text :
       {"rlimits { type: 'RLIMIT_FOO' hard: 1 }", "rlimits { type: 'nofile' hard: 1 }",
        "rlimits { type: 'RLIMIT_CORE' hard: 1 soft: 2 }"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("invalid argument: a plugin wants to change Rlimits"))
        << text;
  }
}

// A message about the Docker API names it.
TEST_F(AdjustmentMappingTest, MessagesNameTheApi) {
  policy_.Set(api::FIELD_MOUNTS, FailurePolicy::kIgnore);
  policy_.Set(api::FIELD_DEVICES, FailurePolicy::kIgnore);
  policy_.Set(api::FIELD_OCI_HOOKS, FailurePolicy::kIgnore);
  policy_.Set(api::FIELD_SYSCTL, FailurePolicy::kIgnore);
  const char* const all =
      "hooks { poststop { path: '/h' } } mounts { destination: '/t' type: 'tmpfs' } "
      "mounts { destination: '/n' source: '/n' type: 'bind' options: 'noexec' } "
      "linux { devices { path: '/dev/p' type: 'p' } sysctl { key: 'a' value: '1' } "
      "        scheduler {} resources { memory { swappiness {} use_hierarchy {} } } }";
  EXPECT_THAT(Warnings(all),
              Contains("a plugin wants to set OciHooks /h: the CRI has no field for it"));
  traits_ = TraitsOf("docker", "20.10.24", false);
  EXPECT_THAT(
      Warnings(all),
      UnorderedElementsAre(
          "a plugin wants to set OciHooks /h: the Docker API has no field for it",
          "a plugin wants to set Mounts /t: only bind mounts are added by the Docker API, not "
          "\"tmpfs\"",
          "a plugin wants to set Mounts /n: the Docker API does not have the mount option "
          "\"noexec\"",
          "a plugin wants to set Devices /dev/p: the Docker API has no devices of type \"p\"",
          "a plugin wants to set Sysctl a: cri-resmgr does not set it by the Docker API",
          "a plugin wants to set LinuxSched: the Docker API has no field for it",
          "a plugin wants to set MemSwappiness: cri-resmgr does not set it by the Docker API",
          "a plugin wants to set MemUseHierarchy: the Docker API has no field for it"));
}

TEST(MappedPartsTest, MountsHaveTheCrisOptions) {
  const auto map = [](const char* text, const RuntimeTraits& traits = {}) {
    return MapMount(Make<api::Mount>(text), traits);
  };
  using enum Mount::Propagation;
  EXPECT_EQ(*map("destination: '/m' source: '/h' type: 'bind'"),
            (Mount{.container_path = "/m", .host_path = "/h", .non_recursive = true}));
  EXPECT_EQ(*map("destination: '/m' source: '/h' options: 'rbind' options: 'ro' options: 'rslave' "
                 "options: 'relabel'"),
            (Mount{.container_path = "/m",
                   .host_path = "/h",
                   .read_only = true,
                   .selinux_relabel = true,
                   .propagation = kHostToContainer}));
  constexpr const char* kRecursive = "source: '/h' type: 'bind' options: 'rbind' options: 'rro'";
  EXPECT_TRUE(map(kRecursive)->recursive_read_only);
  EXPECT_TRUE(map(kRecursive)->read_only);
  EXPECT_FALSE(map(kRecursive, {.recursive_read_only = false}).ok());
  EXPECT_EQ(map("source: '/h' type: 'bind' options: 'rshared'")->propagation, kBidirectional);
  for (const char* const text : {
           "source: 'tmpfs' type: 'tmpfs'",
           "source: '/h'",
           "source: '/h' type: 'none'",
           "source: 'h' type: 'bind'",
           "type: 'bind'",
           "source: '/h' type: 'bind' options: 'noexec'",
           "source: '/h' type: 'bind' options: 'rro' options: 'rshared'",
       }) {
    EXPECT_FALSE(map(text).ok()) << text;
  }
}

TEST(MappedPartsTest, DevicesHaveTheirModesPermissions) {
  const auto permissions = [](const char* text) {
    return MapDevice(Make<api::LinuxDevice>("path: '/d' " + std::string(text)), {})->permissions;
  };
  EXPECT_EQ(permissions("type: 'c'"), "rw");
  EXPECT_EQ(permissions("type: 'b'"), "rwm");
  EXPECT_EQ(permissions("type: 'u' file_mode { value: 256 }"), "r");
  EXPECT_EQ(permissions("type: 'c' file_mode { value: 128 }"), "w");
  EXPECT_EQ(permissions("type: 'c' file_mode {}"), "rw");
  for (const char* const text :
       {"path: '/d' type: 'p'", "path: '/d'", "path: 'd' type: 'c'",
        "path: '/d' type: 'c' major: -1", "path: '/d' type: 'c' minor: 1048576"}) {
    EXPECT_FALSE(MapDevice(Make<api::LinuxDevice>(text), {}).ok()) << text;
  }
}

TEST(MappedPartsTest, SeccompPoliciesAreTheOcisJson) {
  EXPECT_EQ(SeccompJson(Make<api::LinuxSeccomp>(R"(
    default_action: "SCMP_ACT_ERRNO" default_errno { value: 38 }
    architectures: "SCMP_ARCH_X86_64" flags: "SECCOMP_FILTER_FLAG_LOG"
    listener_path: "/run/l" listener_metadata: "m"
    syscalls { names: "read" names: "write" action: "SCMP_ACT_ALLOW" errno_ret { value: 1 }
               args { index: 1 value: 2 value_two: 3 op: "SCMP_CMP_EQ" } })")),
            R"({"architectures":["SCMP_ARCH_X86_64"],"defaultAction":"SCMP_ACT_ERRNO",)"
            R"("defaultErrnoRet":38,"flags":["SECCOMP_FILTER_FLAG_LOG"],"listenerMetadata":"m",)"
            R"("listenerPath":"/run/l","syscalls":[{"action":"SCMP_ACT_ALLOW","args":)"
            R"([{"index":1,"op":"SCMP_CMP_EQ","value":2,"valueTwo":3}],"errnoRet":1,)"
            R"("names":["read","write"]}]})");
}

}  // namespace
}  // namespace resmgr::nri
