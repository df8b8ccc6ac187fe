// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/pod_fingerprint.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

// The values are those of the tests of podfingerprint.
TEST(PodFingerprintTest, HasTheValuesOfTheOriginal) {
  EXPECT_EQ(PodFingerprint({}), "pfp0v001ef46db3751d8e999");
  EXPECT_EQ(PodFingerprint({{"default", "pod0"}}), "pfp0v00110399bf9eea6fbd3");
  EXPECT_EQ(PodFingerprint({{"production", "jaeger-dpgjk"},
                            {"production", "nginx-rt684"},
                            {"production", "envoy-g9m22"}}),
            "pfp0v001607b76a0e9d3aeb4");
  EXPECT_EQ(PodFingerprint({{"analytics", "controller-69dkj"},
                            {"kube-public", "subscriber-tq6v7"},
                            {"kube-public", "transformer-hfbng"},
                            {"kube-public", "validator-c6pn5"},
                            {"kube-system", "proxy-wszrd"},
                            {"middleware", "processor-jkrl4"},
                            {"network", "gateway-vsll5"},
                            {"network", "importer-kzdfr"},
                            {"network", "importer-q5vt9"},
                            {"staging", "prometheus-bwgbn"}}),
            "pfp0v001567144e4a561bb5a");
}

TEST(PodFingerprintTest, TheOrderHasNoEffect) {
  EXPECT_EQ(PodFingerprint({{"a", "1"}, {"b", "2"}, {"c", "3"}}),
            PodFingerprint({{"c", "3"}, {"a", "1"}, {"b", "2"}}));
}

TEST(PodFingerprintTest, NamespacesAndRepetitionsCount) {
  EXPECT_NE(PodFingerprint({{"a", "pod"}}), PodFingerprint({{"b", "pod"}}));
  EXPECT_NE(PodFingerprint({{"a", "pod"}}), PodFingerprint({{"a", "pod"}, {"a", "pod"}}));
}

}  // namespace
}  // namespace resmgr
