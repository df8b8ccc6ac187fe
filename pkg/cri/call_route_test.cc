// SPDX-License-Identifier: Apache-2.0
// How the runtime of a call is found: by its method, its route, and the owner of an id.
#include "pkg/cri/call_route.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/id_owners.h"
#include "pkg/cri/method_table.h"

namespace resmgr {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using testing::ElementsAre;
using testing::Eq;
using testing::Optional;
using testing::SizeIs;
using By = CallRoute::By;
using Kind = IdOwners::Kind;

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

// Compares every method of the CRI in our .proto file with the routes, so that none of them goes to
// the default runtime by oversight.
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

class IdOwnersTest : public testing::Test {
 protected:
  std::optional<IdOwners::Owner> Find(std::string_view id, Kind kind = Kind::kContainer) const {
    const auto owner = owners_.Find(kind, id);
    EXPECT_TRUE(owner.ok()) << Describe(owner.status());
    return owner.value_or(std::nullopt);
  }

  IdOwners owners_;
};

TEST_F(IdOwnersTest, FindsWholeIdsAndBeginnings) {
  owners_.Add(Kind::kContainer, "abc1", 0);
  owners_.Add(Kind::kContainer, "abc2", 0);
  owners_.Add(Kind::kContainer, "b", 1);
  owners_.Add(Kind::kContainer, "bb", 0);
  EXPECT_THAT(Find("abc1"), Optional(0U));
  EXPECT_THAT(Find("abc"), Optional(0U)) << "the runtime itself says that there are two";
  EXPECT_THAT(Find("b"), Optional(1U)) << "a whole id counts more than a beginning";
  EXPECT_THAT(Find("abc3"), Eq(std::nullopt));
  EXPECT_THAT(Find(""), Eq(std::nullopt));
  EXPECT_THAT(Find("abc1", Kind::kPodSandbox), Eq(std::nullopt));
}

TEST_F(IdOwnersTest, BeginningOfIdsOfTwoRuntimesIsRefused) {
  owners_.Add(Kind::kPodSandbox, "abc", 0);
  owners_.Add(Kind::kPodSandbox, "abd", 1);
  EXPECT_EQ(owners_.Find(Kind::kPodSandbox, "ab").status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Find("abd", Kind::kPodSandbox), Optional(1U));
  owners_.Remove(Kind::kPodSandbox, "abd", 0);
  EXPECT_THAT(Find("abd", Kind::kPodSandbox), Optional(1U)) << "only its owner removes it";
  owners_.Remove(Kind::kPodSandbox, "abd", 1);
  EXPECT_THAT(Find("ab", Kind::kPodSandbox), Optional(0U));
}

TEST_F(IdOwnersTest, ListReplacesWhatIsOlder) {
  owners_.Add(Kind::kContainer, "gone", 0);
  owners_.Add(Kind::kContainer, "other", 1);
  const auto begin = owners_.BeginList();
  owners_.Add(Kind::kContainer, "new", 0);
  owners_.SetAll(Kind::kContainer, 0, {"listed"}, begin);
  EXPECT_THAT(Find("gone"), Eq(std::nullopt));
  EXPECT_THAT(Find("listed"), Optional(0U));
  EXPECT_THAT(Find("new"), Optional(0U)) << "created while the list was made";
  EXPECT_THAT(Find("other"), Optional(1U));
}

TEST_F(IdOwnersTest, TheFirstClaimCountsUntilItsOwnerGivesItBack) {
  std::vector<std::string> conflicts;
  owners_.OnConflict([&conflicts](const IdOwners::Conflict& conflict) {
    conflicts.push_back(fmt::format("{} {} {}", conflict.id, conflict.owner, conflict.claimant));
  });
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "same", 0));
  EXPECT_FALSE(owners_.Add(Kind::kContainer, "same", 1));
  owners_.SetAll(Kind::kContainer, 1, {"same", "own"}, owners_.BeginList());
  EXPECT_THAT(Find("same"), Optional(0U));
  EXPECT_THAT(Find("own"), Optional(1U));
  EXPECT_THAT(conflicts, ElementsAre("same 0 1")) << "told once";
  EXPECT_TRUE(owners_.IsOfOther(Kind::kContainer, "same", 1));
  EXPECT_FALSE(owners_.IsOfOther(Kind::kContainer, "same", 0));
  // The claimant gives the id up, and claims it again.
  owners_.SetAll(Kind::kContainer, 1, {"own"}, owners_.BeginList());
  EXPECT_FALSE(owners_.Add(Kind::kContainer, "same", 1));
  EXPECT_THAT(conflicts, SizeIs(2));
  // The owner sends a complete list.
  owners_.SetAll(Kind::kContainer, 0, {}, owners_.BeginList());
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "same", 1));
  EXPECT_THAT(Find("same"), Optional(1U));
  EXPECT_THAT(conflicts, SizeIs(2));
  // Another runtime has the pod's handler now.
  EXPECT_TRUE(owners_.Add(Kind::kPodUid, "uid", 0));
  EXPECT_TRUE(owners_.Add(Kind::kPodUid, "uid", 1));
  EXPECT_THAT(Find("uid", Kind::kPodUid), Optional(1U));
}

TEST_F(IdOwnersTest, ConflictsAreBounded) {
  size_t told = 0;
  owners_.OnConflict([&told](const IdOwners::Conflict&) { ++told; });
  const size_t many = IdOwners::kMostConflicts + 10;
  for (size_t i = 0; i < many; ++i)
    owners_.Add(Kind::kContainer, std::to_string(i), 0);
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < many; ++i)
      EXPECT_FALSE(owners_.Add(Kind::kContainer, std::to_string(i), 1));
  EXPECT_EQ(told, many + 10) << "beyond the bound each claim is told";
}

TEST_F(IdOwnersTest, IdsAreBounded) {
  owners_.Add(Kind::kContainer, std::string(IdOwners::kLongestId + 1, 'x'), 0);
  EXPECT_EQ(owners_.size(Kind::kContainer), 0U);
  for (size_t i = 0; i < IdOwners::kMostIds + 10; ++i)
    owners_.Add(Kind::kContainer, std::to_string(i), 0);
  EXPECT_EQ(owners_.size(Kind::kContainer), IdOwners::kMostIds);
  owners_.Remove(Kind::kContainer, "0", 0);
  EXPECT_TRUE(owners_.Add(Kind::kContainer, "0", 1));
  EXPECT_THAT(Find("0"), Optional(1U)) << "there is room again";
}

TEST(MethodTableTest, KnowsBothApiVersions) {
  for (const char* path : {"/runtime.v1.RuntimeService/CreateContainer",
                           "/runtime.v1alpha2.RuntimeService/CreateContainer"}) {
    const Method method = ClassifyMethod(path);
    EXPECT_EQ(method.service, Service::kRuntime);
    EXPECT_EQ(method.operation, Operation::kCreateContainer);
    EXPECT_EQ(method.name, "CreateContainer");
    EXPECT_FALSE(method.endless);
  }
}

// gRPC's server in Go, and so containerd 1.6, accepts paths without it.
TEST(MethodTableTest, TheSlashInFrontMayBeMissing) {
  for (const std::string& path : KnownMethodPaths()) {
    const Method with = ClassifyMethod(path);
    const std::string bare = path.substr(1);
    const Method without = ClassifyMethod(bare);
    EXPECT_EQ(without.operation, with.operation) << path;
    EXPECT_EQ(without.service, with.service) << path;
    EXPECT_EQ(without.endless, with.endless) << path;
    EXPECT_EQ(without.place, with.place) << path;
    EXPECT_EQ(without.name, with.name);
    EXPECT_EQ(without.path, path) << "counted and shown like the other";
    EXPECT_FALSE(without.unknown) << path;
  }
  const Method next = ClassifyMethod("runtime.v1.RuntimeService/NextYearsMethod");
  EXPECT_TRUE(next.unknown);
  EXPECT_EQ(next.path, "runtime.v1.RuntimeService/NextYearsMethod");
  for (const char* path :
       {"//runtime.v1.RuntimeService/CreateContainer", "/runtime.v1.RuntimeService/createContainer",
        "/runtime.v1.RuntimeService/CreateContainer/",
        "/runtime.v1.RuntimeService/CreateContainer?x"})
    EXPECT_EQ(ClassifyMethod(path).operation, Operation::kOther) << path;
}

TEST(MethodTableTest, ImageCallsAreNotOperations) {
  const Method method = ClassifyMethod("/runtime.v1.ImageService/PullImage");
  EXPECT_EQ(method.service, Service::kImage);
  EXPECT_EQ(method.operation, Operation::kOther);
}

TEST(MethodTableTest, EventsAreEndless) {
  EXPECT_TRUE(ClassifyMethod("/runtime.v1.RuntimeService/GetContainerEvents").endless);
}

TEST(MethodTableTest, WhatIsUnknownPasses) {
  for (const char* path :
       {"/runtime.v1.RuntimeService/NextYearsMethod", "/runtime.v2.RuntimeService/CreateContainer",
        "/other.Service/CreateContainer", "/CreateContainer", "CreateContainer", "/", "", "//"}) {
    EXPECT_EQ(ClassifyMethod(path).operation, Operation::kOther) << path;
  }
  EXPECT_EQ(ClassifyMethod("/other.Service/StartContainer").service, Service::kOther);
}

TEST(MethodTableTest, EveryKnownMethodHasItsPlace) {
  const std::vector<std::string> paths = KnownMethodPaths();
  for (size_t i = 0; i < paths.size(); ++i)
    EXPECT_EQ(ClassifyMethod(paths[i]).place, i) << paths[i];
  for (const char* path : {"/runtime.v1.RuntimeService/NextYearsMethod", "", "/"})
    EXPECT_EQ(ClassifyMethod(path).place, paths.size()) << path;
}

TEST(MethodTableTest, TellsRuntimesMethodsThatItDoesNotKnow) {
  for (const std::string& path : KnownMethodPaths())
    EXPECT_FALSE(ClassifyMethod(path).unknown) << path;
  EXPECT_TRUE(ClassifyMethod("/runtime.v1.RuntimeService/RestorePod").unknown);
  EXPECT_TRUE(ClassifyMethod("/runtime.v1alpha2.RuntimeService/NextYearsMethod").unknown);
  // None of these creates a pod.
  for (const char* path : {"/runtime.v1.ImageService/NextYearsMethod", "/other.Service/RestorePod",
                           "/grpc.health.v1.Health/Check"}) {
    EXPECT_FALSE(ClassifyMethod(path).unknown) << path;
  }
}

}  // namespace
}  // namespace resmgr
