// SPDX-License-Identifier: Apache-2.0
// Compares every method of the CRI in our .proto file with the routes, so that none of them goes to
// the default runtime by oversight.
#include "pkg/cri/call_route.h"

#include <string>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"

namespace resmgr {
namespace {

using By = CallRoute::By;
using Kind = IdOwners::Kind;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;

CallRoute RouteTo(const MethodDescriptor& method) {
  const std::string path = fmt::format("/{}/{}", method.service()->full_name(), method.name());
  return RouteOf(ClassifyMethod(path));
}

// The request's field 1 if it is the id of one object.
std::string IdOf(const Descriptor& request) {
  const FieldDescriptor* const first = request.FindFieldByNumber(1);
  const bool is_id =
      first != nullptr && (first->name() == "pod_sandbox_id" || first->name() == "container_id");
  return is_id ? first->name() : "";
}

uint32_t NumberIn(const Descriptor& message, const char* name) {
  const FieldDescriptor* const field = message.FindFieldByName(name);
  return field == nullptr ? 0 : static_cast<uint32_t>(field->number());
}

// `id` in a filter for containers is a container's, in one for pod sandboxes a sandbox's.
void ExpectFilter(const CallRoute& route, const Descriptor& filter) {
  const bool of_containers = filter.name().starts_with("Container");
  EXPECT_EQ(route.filter_container_id, of_containers ? NumberIn(filter, "id") : 0U);
  EXPECT_EQ(route.filter_pod_sandbox_id,
            of_containers ? NumberIn(filter, "pod_sandbox_id") : NumberIn(filter, "id"));
}

TEST(CallRouteTest, EveryMethodGoesToTheRuntimeThatItIsAbout) {
  const google::protobuf::FileDescriptor& file =
      *::runtime::v1::VersionRequest::descriptor()->file();
  ASSERT_EQ(file.service_count(), 2);
  int about_an_id = 0;
  for (int s = 0; s < file.service_count(); ++s) {
    for (int m = 0; m < file.service(s)->method_count(); ++m) {
      const MethodDescriptor& method = *file.service(s)->method(m);
      SCOPED_TRACE(method.full_name());
      const CallRoute route = RouteTo(method);
      const Descriptor& request = *method.input_type();
      if (const std::string id = IdOf(request); !id.empty()) {
        ++about_an_id;
        EXPECT_EQ(route.by, By::kId);
        EXPECT_EQ(route.id_kind, id == "container_id" ? Kind::kContainer : Kind::kPodSandbox);
        continue;
      }
      if (method.name() == "Version") {
        EXPECT_EQ(route.by, By::kDefault);
        continue;
      }
      EXPECT_NE(route.by, By::kDefault);
      EXPECT_NE(route.by, By::kId) << "its field 1 is no id";
      EXPECT_EQ(route.by == By::kEach, method.server_streaming());
      const FieldDescriptor* const filter = request.FindFieldByName("filter");
      if (filter != nullptr && route.image == CallRoute::Image::kNone) {
        EXPECT_EQ(filter->number(), 1);
        ExpectFilter(route, *filter->message_type());
      }
    }
  }
  EXPECT_GE(about_an_id, 18);
}

// A method of CRI 1.37, which the .proto file lacks; it has a string where other requests have
// messages.
TEST(CallRouteTest, RestoredPodsGoToTheRuntimeOfTheirHandler) {
  const CallRoute route = RouteOf(ClassifyMethod("/runtime.v1.RuntimeService/RestorePod"));
  const auto keys = ReadRouteKeys(route, "\x0a\x05/path\x1a\x04kata");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(route.by, By::kHandler);
  EXPECT_EQ(keys->handler, "kata");
  EXPECT_EQ(RouteOf(ClassifyMethod("/runtime.v1.RuntimeService/CheckpointPod")).id_kind,
            Kind::kPodSandbox);
  EXPECT_EQ(RouteOf(ClassifyMethod("/runtime.v1.RuntimeService/NextYearsMethod")).by, By::kDefault);
}

}  // namespace
}  // namespace resmgr
