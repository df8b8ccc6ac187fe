// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/kubernetes/cluster.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

// Parts of pods' specs.
Json ContainerSpec(const std::string& name, const Json& resources);
// In the host's network, on the node.
Json PodSpec(const std::vector<Json>& containers);
Json Guaranteed(int cpus);
Json Burstable(const std::string& cpu = "100m");
Json BestEffort();

// One cluster for all tests; each leaves it as it found it.
class KubernetesTest : public testing::Test {
 protected:
  static constexpr char kDefaultMap[] = "cri-resmgr-config.default";
  static constexpr char kGroupMap[] = "cri-resmgr-config.group.e2e";
  static const std::string kNodeMap;

  static void SetUpTestSuite();
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override { ASSERT_NE(cluster_, nullptr) << "the cluster did not start"; }
  void TearDown() override;

  // Creates all pods, then waits for all of them.
  void Run(const std::map<std::string, Json>& pods);
  // One of each class; the Guaranteed one has an init container, and a CPU of its own under the
  // static policy.
  void RunOneOfEach();

  std::map<std::string, Cluster::Container> Containers();
  Grants Granted();

  // Sets the map and waits for the verdict of cri-resmgr.
  void Apply(const std::string& map, const std::string& policy,
             const std::string& status = "accepted");
  void ExpectGuaranteedAlone();
  // The same containers as before, never restarted.
  static void ExpectSameContainers(const std::map<std::string, Cluster::Container>& before,
                                   const std::map<std::string, Cluster::Container>& after);

  static std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> pods_;
};

}  // namespace resmgr::test
