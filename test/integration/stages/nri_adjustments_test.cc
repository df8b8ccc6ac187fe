// SPDX-License-Identifier: Apache-2.0
// Each field of docs/nri-plugins.md that the CRI has, from two plugins' replies to the request that
// a runtime gets.
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/api/nri.pb.h"
#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/cri_request.h"
#include "pkg/cri/messages.h"
#include "pkg/nri/host/mapping/adjustment_mapping.h"
#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/host/view/object_views.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::runtime::v1::CreateContainerRequest;

template <typename Message>
Message Parsed(std::string_view text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &message)) << text;
  return message;
}

constexpr std::string_view kRequest = R"(
  pod_sandbox_id: "sandbox"
  config {
    metadata { name: "app" }
    image { image: "sha256:abc" }
    command: "/bin/app" args: "-v"
    envs { key: "A" value: "1" } envs { key: "B" value: "1" } envs { key: "C" value: "1" }
    mounts { container_path: "/data" host_path: "/host" }
    mounts { container_path: "/etc/hosts" host_path: "/h" readonly: true }
    devices { container_path: "/dev/old" host_path: "/dev/old" permissions: "r" }
    labels { key: "l" value: "1" }
    annotations { key: "a" value: "1" }
    annotations { key: "io.kubernetes.container.hash" value: "123" }
    linux {
      resources {
        cpu_shares: 1024 memory_limit_in_bytes: 1000
        hugepage_limits { page_size: "2MB" limit: 0 }
      }
      security_context { seccomp { profile_type: RuntimeDefault } seccomp_profile_path: "runtime/default" }
    }
  })";

struct Row {
  const char* name;
  std::vector<const char*> replies;         // ContainerAdjustment of one plugin after the other
  void (*expect)(CreateContainerRequest&);  // checks the resulting request
};

std::string NameOf(const testing::TestParamInfo<Row>& row) {
  return row.param.name;
}

class AdjustmentsTest : public testing::TestWithParam<Row> {};

// Applies the replies as the stage of the plugins does.
std::string Adjusted(const std::string& bytes, const std::vector<const char*>& replies) {
  CreateRequest create;
  CreateParts parts;
  EXPECT_TRUE(DecodeCreateContainer(bytes, create, parts).ok());
  ContainerDetails details;
  EXPECT_TRUE(DecodeDetails(parts.config, parts.sandbox_config, kAllDetails, details));
  AdjustmentMerge merge(Given(ToContainer(create, details, nullptr, {})));
  for (size_t i = 0; i < replies.size(); ++i) {
    api::CreateContainerResponse reply;
    *reply.mutable_adjust() = Parsed<api::ContainerAdjustment>(replies[i]);
    EXPECT_TRUE(merge.Add(std::to_string(i) + "0-plugin", reply).ok());
  }
  const std::vector<OwnedField> owners = merge.owned("");
  const UnsupportedPolicy policy;
  const RuntimeTraits traits;
  const MappingContext context{.details = details,
                               .pristine = merge.pristine(),
                               .owners = owners,
                               .policy = policy,
                               .traits = traits};
  auto mapped = MapAdjustment(merge.adjustment(), context);
  EXPECT_TRUE(mapped.ok()) << Describe(mapped.status());
  if (!mapped.ok()) return {};
  EXPECT_TRUE(mapped->warnings.empty()) << mapped->warnings[0];
  FoundFiles found{.seccomp_profile = "/run/profile.json"};
  found.devices = FindDevices(mapped->host_files.devices);
  found.below.resize(mapped->host_files.mounts.size());
  EXPECT_TRUE(AddHostFiles(found, context, *mapped).ok());
  const auto spliced = SpliceAdjustment(Operation::kCreateContainer, bytes, mapped->adjustment);
  EXPECT_TRUE(spliced.ok());
  return spliced.ok() ? spliced->ToString() : std::string();
}

TEST_P(AdjustmentsTest, ReachesTheRuntime) {
  const auto request = Parsed<CreateContainerRequest>(kRequest);
  CreateContainerRequest expected = request;
  GetParam().expect(expected);

  CreateContainerRequest adjusted;
  ASSERT_TRUE(adjusted.ParseFromString(Adjusted(request.SerializeAsString(), GetParam().replies)));

  std::string differences;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(expected, adjusted)) << differences;
}

auto& Config(CreateContainerRequest& request) {
  return *request.mutable_config();
}
auto& Resources(CreateContainerRequest& request) {
  return *Config(request).mutable_linux()->mutable_resources();
}
auto& Annotations(CreateContainerRequest& request) {
  return *Config(request).mutable_annotations();
}

INSTANTIATE_TEST_SUITE_P(
    EntriesWithKeys, AdjustmentsTest,
    testing::Values(
        Row{"NothingChangesNothing", {"", ""}, [](CreateContainerRequest&) {}},
        Row{"Annotations",
            {"annotations { key: 'b' value: '2' }", "annotations { key: '-a' value: '' }"},
            [](CreateContainerRequest& request) {
              Annotations(request).erase("a");
              Annotations(request)["b"] = "2";
            }},
        Row{"AnnotationsTakenOver",
            {"annotations { key: 'a' value: '2' }",
             "annotations { key: '-a' value: '' } annotations { key: 'a' value: '3' }"},
            [](CreateContainerRequest& request) { Annotations(request)["a"] = "3"; }},
        Row{"Environment",
            {"env { key: 'B' value: '2' } env { key: 'D' value: '4' }", "env { key: '-A' }"},
            [](CreateContainerRequest& request) {
              Config(request).mutable_envs(1)->set_value("2");
              *Config(request).add_envs() = Parsed<::runtime::v1::KeyValue>("key: 'D' value: '4'");
              Config(request).mutable_envs()->DeleteSubrange(0, 1);
            }},
        Row{"EnvironmentOfAnotherPluginIsRemoved",
            {"env { key: 'B' value: '2' }", "env { key: '-B' }"},
            [](CreateContainerRequest& request) {
              Config(request).mutable_envs()->DeleteSubrange(1, 1);
            }},
        Row{"Arguments",
            {"args: 'wrap' args: '/bin/app'"},
            [](CreateContainerRequest& request) {
              Config(request).clear_args();
              Config(request).set_command(0, "wrap");
              Config(request).add_command("/bin/app");
            }},
        Row{"ArgumentsTakenOver",
            {"args: 'one'", "args: '' args: 'two' args: '-x'"},
            [](CreateContainerRequest& request) {
              Config(request).clear_args();
              Config(request).set_command(0, "two");
              Config(request).add_command("-x");
            }},
        Row{"Mounts",
            {"mounts { destination: '/data' source: '/new' type: 'bind' options: 'rbind' "
             "options: 'rro' } mounts { destination: '/more' source: '/m' options: 'bind' "
             "options: 'ro' options: 'rslave' }",
             "mounts { destination: '-/etc/hosts' }"},
            [](CreateContainerRequest& request) {
              auto& mounts = *Config(request).mutable_mounts();
              mounts[0].set_host_path("/new");
              mounts[0].set_readonly(true);
              mounts[0].set_recursive_read_only(true);
              mounts.DeleteSubrange(1, 1);
              *mounts.Add() = Parsed<::runtime::v1::Mount>(
                  "container_path: '/more' host_path: '/m' readonly: true "
                  "propagation: PROPAGATION_HOST_TO_CONTAINER");
            }},
        Row{"Devices",
            {"linux { devices { path: '/dev/null' type: 'c' major: 1 minor: 3 } }",
             "linux { devices { path: '-/dev/old' } }"},
            [](CreateContainerRequest& request) {
              auto& device = *Config(request).mutable_devices(0);
              device.set_container_path("/dev/null");
              device.set_host_path("/dev/null");
              device.set_permissions("rw");
            }},
        Row{"CdiDevices",
            {"CDI_devices { name: 'vendor/a=0' }", "CDI_devices { name: 'vendor/b=0' }"},
            [](CreateContainerRequest& request) {
              Config(request).add_cdi_devices()->set_name("vendor/a=0");
              Config(request).add_cdi_devices()->set_name("vendor/b=0");
            }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Resources, AdjustmentsTest,
    testing::Values(
        Row{"Cpu",
            {"linux { resources { cpu { shares { value: 2 } quota { value: -1 } } } }",
             "linux { resources { cpu { period { value: 50000 } cpus: '0,2-3' mems: '1' } } }"},
            [](CreateContainerRequest& request) {
              Resources(request).set_cpu_shares(2);
              Resources(request).set_cpu_quota(-1);
              Resources(request).set_cpu_period(50000);
              Resources(request).set_cpuset_cpus("0,2-3");
              Resources(request).set_cpuset_mems("1");
            }},
        Row{"Memory",
            {"linux { resources { memory { limit { value: 5 } swap { value: 6 } } } }",
             "linux { resources { memory { reservation { value: 4 } } pids { limit: 9 } } }"},
            [](CreateContainerRequest& request) {
              Resources(request).set_memory_limit_in_bytes(5);
              Resources(request).set_memory_swap_limit_in_bytes(6);
              (*Resources(request).mutable_unified())["memory.low"] = "4";
              (*Resources(request).mutable_unified())["pids.max"] = "9";
            }},
        Row{"HugePages",
            {"linux { resources { hugepage_limits { page_size: '2MB' limit: 7 } } }",
             "linux { resources { hugepage_limits { page_size: '1GB' limit: 8 } } }"},
            [](CreateContainerRequest& request) {
              Resources(request).mutable_hugepage_limits(0)->set_limit(7);
              *Resources(request).add_hugepage_limits() =
                  Parsed<::runtime::v1::HugepageLimit>("page_size: '1GB' limit: 8");
            }},
        Row{"Unified",
            {"linux { resources { unified { key: 'memory.high' value: '1' } } }"},
            [](CreateContainerRequest& request) {
              (*Resources(request).mutable_unified())["memory.high"] = "1";
            }},
        Row{"Classes",
            {"linux { resources { blockio_class { value: 'slow' } } }",
             "linux { resources { rdt_class { value: 'gold' } } }"},
            [](CreateContainerRequest& request) {
              Annotations(request)["io.kubernetes.cri.blockio-class"] = "slow";
              Annotations(request)["io.kubernetes.cri.rdt-class"] = "gold";
            }},
        Row{"ClassOfRdt",
            {"linux { rdt { clos_id { value: 'gold' } } }"},
            [](CreateContainerRequest& request) {
              Annotations(request)["io.kubernetes.cri.rdt-class"] = "gold";
            }},
        Row{"OomScore",
            {"linux { oom_score_adj { value: -7 } }"},
            [](CreateContainerRequest& request) { Resources(request).set_oom_score_adj(-7); }},
        Row{"Seccomp",
            {"linux { seccomp_policy { default_action: 'SCMP_ACT_ALLOW' } }"},
            [](CreateContainerRequest& request) {
              auto& security = *Config(request).mutable_linux()->mutable_security_context();
              security.clear_seccomp_profile_path();
              security.mutable_seccomp()->set_profile_type(
                  ::runtime::v1::SecurityProfile::Localhost);
              security.mutable_seccomp()->set_localhost_ref("/run/profile.json");
            }}),
    NameOf);

}  // namespace
}  // namespace resmgr::nri
