// SPDX-License-Identifier: Apache-2.0
// Pins names and numbers of the CRI messages, so that an edit of the proto text cannot silently
// change what goes over the wire. Included behind <csignal>, whose macros have the names of enum
// values.
#include <csignal>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"

namespace resmgr {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const FileDescriptor& V1() {
  return *runtime::v1::VersionRequest::descriptor()->file();
}

const FieldDescriptor* Field(std::string_view message, std::string_view field) {
  const auto* descriptor = V1().FindMessageTypeByName(std::string(message));
  return descriptor == nullptr ? nullptr : descriptor->FindFieldByName(std::string(field));
}

struct Pin {
  std::string_view message;
  std::string_view field;
  int number;
  FieldDescriptor::Type type;
  bool repeated = false;
};

TEST(ApiTest, FieldsHaveTheNumbersAndTypesOfTheInterface) {
  const Pin pins[] = {
      {"CreateContainerRequest", "pod_sandbox_id", 1, FieldDescriptor::TYPE_STRING},
      {"CreateContainerRequest", "config", 2, FieldDescriptor::TYPE_MESSAGE},
      {"CreateContainerRequest", "sandbox_config", 3, FieldDescriptor::TYPE_MESSAGE},
      {"ContainerConfig", "envs", 6, FieldDescriptor::TYPE_MESSAGE, true},
      {"ContainerConfig", "linux", 15, FieldDescriptor::TYPE_MESSAGE},
      {"ContainerConfig", "CDI_devices", 17, FieldDescriptor::TYPE_MESSAGE, true},
      {"ContainerConfig", "stop_signal", 18, FieldDescriptor::TYPE_ENUM},
      {"LinuxContainerConfig", "resources", 1, FieldDescriptor::TYPE_MESSAGE},
      {"LinuxContainerResources", "cpu_period", 1, FieldDescriptor::TYPE_INT64},
      {"LinuxContainerResources", "cpu_quota", 2, FieldDescriptor::TYPE_INT64},
      {"LinuxContainerResources", "cpu_shares", 3, FieldDescriptor::TYPE_INT64},
      {"LinuxContainerResources", "memory_limit_in_bytes", 4, FieldDescriptor::TYPE_INT64},
      {"LinuxContainerResources", "oom_score_adj", 5, FieldDescriptor::TYPE_INT64},
      {"LinuxContainerResources", "cpuset_cpus", 6, FieldDescriptor::TYPE_STRING},
      {"LinuxContainerResources", "cpuset_mems", 7, FieldDescriptor::TYPE_STRING},
      {"LinuxContainerResources", "hugepage_limits", 8, FieldDescriptor::TYPE_MESSAGE, true},
      {"LinuxContainerResources", "memory_swap_limit_in_bytes", 10, FieldDescriptor::TYPE_INT64},
      {"UpdateContainerResourcesRequest", "linux", 2, FieldDescriptor::TYPE_MESSAGE},
      {"UpdatePodSandboxResourcesRequest", "resources", 3, FieldDescriptor::TYPE_MESSAGE},
      {"RunPodSandboxRequest", "runtime_handler", 2, FieldDescriptor::TYPE_STRING},
      {"LinuxPodSandboxConfig", "cgroup_parent", 1, FieldDescriptor::TYPE_STRING},
      {"LinuxPodSandboxConfig", "overhead", 4, FieldDescriptor::TYPE_MESSAGE},
      {"PodSandboxConfig", "linux", 8, FieldDescriptor::TYPE_MESSAGE},
      {"PodSandboxMetadata", "namespace", 3, FieldDescriptor::TYPE_STRING},
      {"KeyValue", "value", 2, FieldDescriptor::TYPE_BYTES},
      {"AuthConfig", "password", 2, FieldDescriptor::TYPE_STRING},
      {"AuthConfig", "registry_token", 6, FieldDescriptor::TYPE_STRING},
      {"Mount", "uidMappings", 6, FieldDescriptor::TYPE_MESSAGE, true},
      {"ImageSpec", "user_specified_image", 18, FieldDescriptor::TYPE_STRING},
      {"LinuxContainerSecurityContext", "supplemental_groups_policy", 17,
       FieldDescriptor::TYPE_ENUM},
      {"ContainerStatus", "resources", 16, FieldDescriptor::TYPE_MESSAGE},
      {"Namespace", "options", 2, FieldDescriptor::TYPE_MESSAGE},
      {"PsiData", "Avg300", 4, FieldDescriptor::TYPE_DOUBLE},
      {"PortForwardRequest", "port", 2, FieldDescriptor::TYPE_INT32, true},
  };
  for (const Pin& pin : pins) {
    SCOPED_TRACE(std::string(pin.message) + "." + std::string(pin.field));
    const FieldDescriptor* field = Field(pin.message, pin.field);
    ASSERT_NE(field, nullptr);
    EXPECT_EQ(field->number(), pin.number);
    EXPECT_EQ(field->type(), pin.type);
    EXPECT_EQ(field->is_repeated(), pin.repeated);
  }
}

TEST(ApiTest, EnumsHaveTheNumbersOfTheInterface) {
  const auto number = [](const std::string& name) {
    const auto* value = V1().FindEnumTypeByName(name.substr(0, name.find('.')))
                            ->FindValueByName(name.substr(name.find('.') + 1));
    return value == nullptr ? -1 : value->number();
  };
  EXPECT_EQ(number("NamespaceMode.NODE"), 2);
  EXPECT_EQ(number("ContainerState.CONTAINER_UNKNOWN"), 3);
  EXPECT_EQ(number("ContainerEventType.CONTAINER_DELETED_EVENT"), 3);
  EXPECT_EQ(number("Signal.SIGTERM"), 23);
  EXPECT_EQ(number("Signal.SIGRTMAX"), 65);
  EXPECT_EQ(number("CgroupDriver.CGROUPFS"), 1);
  EXPECT_EQ(int{runtime::v1::SecurityProfile::Localhost}, 2);
}

TEST(ApiTest, EveryCallOfBothServicesIsThere) {
  const auto* runtime_service = V1().FindServiceByName("RuntimeService");
  const auto* image_service = V1().FindServiceByName("ImageService");
  ASSERT_NE(runtime_service, nullptr);
  ASSERT_NE(image_service, nullptr);
  EXPECT_EQ(runtime_service->method_count(), 35);
  EXPECT_EQ(image_service->method_count(), 6);
  const auto* events = runtime_service->FindMethodByName("GetContainerEvents");
  ASSERT_NE(events, nullptr);
  EXPECT_TRUE(events->server_streaming());
  EXPECT_FALSE(events->client_streaming());
  EXPECT_EQ(events->input_type()->name(), "GetEventsRequest");
  EXPECT_EQ(events->output_type()->name(), "ContainerEventResponse");
}

TEST(ApiTest, UnknownFieldsSurviveDecodingAndEncoding) {
  runtime::v1::VersionRequest message;
  const std::string bytes = "\x0a\x01v\xf8\x07\x05";  // version: "v", then field 127: 5
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.SerializeAsString(), bytes);
}

TEST(ApiTest, HeadersLeaveTheMacrosOfSignalsAlone) {
#ifndef SIGTERM
  FAIL() << "SIGTERM is not a macro any more";
#else
  EXPECT_EQ(SIGTERM, 15);
#endif
}

}  // namespace
}  // namespace resmgr
