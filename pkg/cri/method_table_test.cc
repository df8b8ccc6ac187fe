// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/method_table.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/cri/known_methods.h"

namespace resmgr {
namespace {

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
