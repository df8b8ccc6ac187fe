// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/container_body.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::docker {
namespace {

TEST(ContainerBodyTest, ReadsWhatACreationSays) {
  const auto body = ReadCreateBody(R"({
      "Image": "img", "Env": ["A=1", "B=x=y", "C"], "Cmd": ["run"], "Labels": {"a": "b"},
      "HostConfig": {"CpuShares": 512, "CpuQuota": -1, "CpuPeriod": 100000, "Memory": 1048576,
                     "MemorySwap": -1, "OomScoreAdj": -998, "CpusetCpus": "0-1", "CpusetMems": "",
                     "CgroupParent": "/kubepods/pod1", "Runtime": "kata",
                     "Binds": ["/host:/in:ro", "volume:/x"],
                     "Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b"}]}})");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_TRUE(body->has_host_config);
  EXPECT_EQ(body->resources.cpu_shares, 512);
  EXPECT_EQ(body->resources.cpu_quota, -1);
  EXPECT_EQ(body->resources.cpu_period, 100'000);
  EXPECT_EQ(body->resources.memory_limit, 1'048'576);
  EXPECT_EQ(body->resources.oom_score_adj, -998);
  EXPECT_EQ(body->resources.cpuset_cpus, "0-1");
  EXPECT_EQ(body->resources.cpuset_mems, std::nullopt);
  EXPECT_EQ(body->details.memory_swap_limit, -1);
  EXPECT_EQ(body->cgroup_parent, "/kubepods/pod1");
  EXPECT_EQ(body->runtime, "kata");
  EXPECT_EQ(body->labels, (StringMap{{"a", "b"}}));
  ASSERT_EQ(body->details.environment.size(), 2U) << "C is none";
  EXPECT_EQ(body->details.environment[1].value, "x=y");
  ASSERT_EQ(body->details.mounts.size(), 1U);
  EXPECT_EQ(body->details.mounts[0].container_path, "/in");
  EXPECT_TRUE(body->details.mounts[0].read_only);
  ASSERT_EQ(body->details.devices.size(), 1U);
  EXPECT_EQ(body->details.devices[0].container_path, "/dev/b");
}

TEST(ContainerBodyTest, ReadsEqualNamesAsGoDoes) {
  const auto body = ReadCreateBody(R"({
      "labels": {"a": "1", "b": "1"}, "LABELS": {"a": "2"},
      "HostConfig": {"CpuShares": 2, "cpushares": 3, "CPUSHARES": null, "Memory": 5},
      "hostconfig": {"Memory": 6}})");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->resources.cpu_shares, 3);
  EXPECT_EQ(body->resources.memory_limit, 6);
  EXPECT_EQ(body->labels, (StringMap{{"a", "2"}, {"b", "1"}}));
  const auto none = ReadCreateBody(R"({"HostConfig": {"CpuShares": 2}, "HostConfig": null})");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_host_config);
  EXPECT_EQ(none->resources, LinuxResources());
}

// dockerd 20.10 was observed to use the expected values for such bodies.
TEST(ContainerBodyTest, ReadsWhatStandsBesideHostConfigAsDockerdDoes) {
  const auto read = [](const char* text) {
    const auto body = ReadCreateBody(text);
    EXPECT_TRUE(body.ok()) << body.status();
    return body.ok() ? *body : CreateBody();
  };
  CreateBody body = read(R"({"CpuShares": 512, "CpuQuota": 50000, "Memory": 4096,
                             "CpusetMems": "0", "CgroupParent": "/x", "Binds": ["/a:/b"]})");
  EXPECT_TRUE(body.has_host_config);
  EXPECT_EQ(body.resources.cpu_shares, 512);
  EXPECT_EQ(body.resources.cpu_quota, 50'000);
  EXPECT_EQ(body.resources.memory_limit, 4096);
  EXPECT_EQ(body.resources.cpuset_mems, "0");
  EXPECT_EQ(body.cgroup_parent, "/x");
  EXPECT_EQ(body.details.mounts.size(), 1U);
  body = read(R"({"CpuShares": 512, "CpuQuota": 50000, "Memory": 4096, "MemorySwap": 8192,
                  "CpusetCpus": "1", "CpusetMems": "0", "CgroupParent": "/x", "HostConfig": {}})");
  EXPECT_EQ(body.resources.cpu_shares, 512);
  EXPECT_EQ(body.resources.cpu_quota, std::nullopt);
  EXPECT_EQ(body.resources.memory_limit, 4096);
  EXPECT_EQ(body.details.memory_swap_limit, 8192);
  EXPECT_EQ(body.resources.cpuset_cpus, "1");
  EXPECT_EQ(body.resources.cpuset_mems, std::nullopt);
  EXPECT_EQ(body.cgroup_parent, "");
  body = read(R"({"CpuShares": 512, "CpusetCpus": "1",
                  "HostConfig": {"CpuShares": 2, "CpusetCpus": "0"}})");
  EXPECT_EQ(body.resources.cpu_shares, 2);
  EXPECT_EQ(body.resources.cpuset_cpus, "0");
  EXPECT_EQ(read(R"({"Cpuset": "1", "HostConfig": {}})").resources.cpuset_cpus, "1");
  EXPECT_EQ(read(R"({"Cpuset": "1", "CpuShares": 2})").resources.cpuset_cpus, "1");
  EXPECT_EQ(read(R"({"CPUSHARES": 5, "HostConfig": null})").resources.cpu_shares, 5);
  EXPECT_FALSE(read(R"({"Cpuset": "1"})").has_host_config) << "nothing is made of it";
  EXPECT_FALSE(ReadCreateBody(R"({"CpuShares": "2"})").ok()) << "dockerd refuses it, too";
}

TEST(ContainerBodyTest, ReadsMountsLimitsAndSecurity) {
  const auto body = ReadCreateBody(R"({
      "Cmd": "sh", "User": "7:8",
      "HostConfig": {
        "Binds": ["/h:/b:ro,rslave,Z"],
        "Mounts": [{"Type": "bind", "Source": "/h", "Target": "/m", "ReadOnly": true,
                    "BindOptions": {"Propagation": "rshared"}},
                   {"Type": "volume", "Source": "v", "Target": "/v"}],
        "Ulimits": [{"Name": "nofile", "Hard": 20, "Soft": 10}],
        "Privileged": true, "NetworkMode": "container:s", "PidMode": "host", "IpcMode": ""}})");
  ASSERT_TRUE(body.ok()) << body.status();
  const ContainerDetails& details = body->details;
  EXPECT_EQ(details.args, std::vector<std::string>{"sh"}) << "a text is a list of one";
  ASSERT_EQ(details.mounts.size(), 2U);
  EXPECT_EQ(details.mounts[0], (Mount{.container_path = "/b",
                                      .host_path = "/h",
                                      .read_only = true,
                                      .selinux_relabel = true,
                                      .propagation = Mount::Propagation::kHostToContainer}));
  EXPECT_EQ(details.mounts[1].container_path, "/m");
  EXPECT_EQ(details.mounts[1].propagation, Mount::Propagation::kBidirectional);
  ASSERT_EQ(details.resource_limits.size(), 1U);
  EXPECT_EQ(details.resource_limits[0],
            (ResourceLimit{.type = "RLIMIT_NOFILE", .hard = 20, .soft = 10}));
  EXPECT_TRUE(details.security.privileged);
  EXPECT_EQ(details.security.user, 7);
  EXPECT_EQ(details.security.group, 8);
  EXPECT_EQ(details.security.network, NamespaceMode::kPod);
  EXPECT_EQ(details.security.pid, NamespaceMode::kNode);
}

TEST(ContainerBodyTest, ReadsTheSeccompProfileThatCounts) {
  using enum SeccompProfile::Kind;
  const auto read = [](const std::string& config) {
    const auto body = ReadCreateBody(R"({"HostConfig": )" + config + "}");
    EXPECT_TRUE(body.ok()) << body.status();
    return body.ok() ? body->details.security.seccomp : std::nullopt;
  };
  const auto of = [](SeccompProfile::Kind kind) {
    return std::optional(SeccompProfile{.kind = kind});
  };
  for (const char* const config :
       {"null", "{}", R"({"SecurityOpt": null})", R"({"SecurityOpt": ["label=seccomp:x"]})",
        R"({"SecurityOpt": ["seccomp=unconfined", "seccomp=builtin"]})",
        R"({"SecurityOpt": ["seccomp=unconfined"], "SecurityOpt": ["no-new-privileges"]})"}) {
    EXPECT_EQ(read(config), of(kRuntimeDefault)) << config;
  }
  EXPECT_EQ(read(R"({"SecurityOpt": ["seccomp:unconfined"]})"), of(kUnconfined));
  EXPECT_EQ(read(R"({"SecurityOpt": ["seccomp=unconfined", "seccomp={\"a\":1}"]})"),
            of(kLocalhost));
}

TEST(ContainerBodyTest, ANameAloneIsNoVariable) {
  const auto body = ReadCreateBody(R"({"Env": ["A=1", "UNSET", "E="]})");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->details.environment, (Environment{{"A", "1"}, {"E", ""}}));
}

TEST(ContainerBodyTest, CpusAreAQuota) {
  const auto update = ReadUpdateBody(R"({"NanoCpus": 1500000000})");
  ASSERT_TRUE(update.ok());
  EXPECT_TRUE(update->has_resources);
  EXPECT_EQ(update->resources.cpu_quota, 150'000);
  EXPECT_EQ(update->resources.cpu_period, 100'000);
}

TEST(ContainerBodyTest, ARestartPolicyIsNoResource) {
  const auto update = ReadUpdateBody(R"({"CpuShares": 0, "RestartPolicy": {"Name": "always"}})");
  ASSERT_TRUE(update.ok());
  EXPECT_FALSE(update->has_resources);
}

TEST(ContainerBodyTest, RefusesWhatDockerdRefuses) {
  for (const char* const body :
       {"", "[]", "null", "{", R"({"HostConfig": 1})", R"({"HostConfig": {"CpuShares": "2"}})",
        R"({"HostConfig": {"CpusetCpus": 2}})", R"({"Env": "A=1"})", R"({"Labels": []})",
        R"({"HostConfig": {"Memory": 1.5}})"}) {
    EXPECT_EQ(ReadCreateBody(body).status().code(), StatusCode::kInvalidArgument) << body;
  }
}

}  // namespace
}  // namespace resmgr::docker
