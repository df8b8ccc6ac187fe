// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/container_body.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/docker/docker_labels.h"
#include "pkg/docker/json_text.h"
#include "test/support/status_matchers.h"

namespace resmgr::docker {
namespace {

using test::Must;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ContainerBodyTest, ReadsWhatACreationSays) {
  const auto body = Must(ReadCreateBody(R"({
      "Image": "img", "Env": ["A=1", "B=x=y", "C"], "Cmd": ["run"], "Labels": {"a": "b"},
      "HostConfig": {"CpuShares": 512, "CpuQuota": -1, "CpuPeriod": 100000, "Memory": 1048576,
                     "MemorySwap": -1, "OomScoreAdj": -998, "CpusetCpus": "0-1", "CpusetMems": "",
                     "CgroupParent": "/kubepods/pod1", "Runtime": "kata",
                     "Binds": ["/host:/in:ro", "volume:/x"],
                     "Devices": [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b"}]}})"));
  EXPECT_TRUE(body.has_host_config);
  EXPECT_EQ(body.resources.cpu_shares, 512);
  EXPECT_EQ(body.resources.cpu_quota, -1);
  EXPECT_EQ(body.resources.cpu_period, 100'000);
  EXPECT_EQ(body.resources.memory_limit, 1'048'576);
  EXPECT_EQ(body.resources.oom_score_adj, -998);
  EXPECT_EQ(body.resources.cpuset_cpus, "0-1");
  EXPECT_EQ(body.resources.cpuset_mems, std::nullopt);
  EXPECT_EQ(body.details.memory_swap_limit, -1);
  EXPECT_EQ(body.cgroup_parent, "/kubepods/pod1");
  EXPECT_EQ(body.runtime, "kata");
  EXPECT_EQ(body.labels, (StringMap{{"a", "b"}}));
  ASSERT_EQ(body.details.environment.size(), 2U) << "C is none";
  EXPECT_EQ(body.details.environment[1].value, "x=y");
  ASSERT_EQ(body.details.mounts.size(), 1U);
  EXPECT_EQ(body.details.mounts[0].container_path, "/in");
  EXPECT_TRUE(body.details.mounts[0].read_only);
  ASSERT_EQ(body.details.devices.size(), 1U);
  EXPECT_EQ(body.details.devices[0].container_path, "/dev/b");
}

TEST(ContainerBodyTest, ReadsEqualNamesAsGoDoes) {
  const auto body = Must(ReadCreateBody(R"({
      "labels": {"a": "1", "b": "1"}, "LABELS": {"a": "2"},
      "HostConfig": {"CpuShares": 2, "cpushares": 3, "CPUSHARES": null, "Memory": 5},
      "hostconfig": {"Memory": 6}})"));
  EXPECT_EQ(body.resources.cpu_shares, 3);
  EXPECT_EQ(body.resources.memory_limit, 6);
  EXPECT_EQ(body.labels, (StringMap{{"a", "2"}, {"b", "1"}}));
  const auto none = Must(ReadCreateBody(R"({"HostConfig": {"CpuShares": 2}, "HostConfig": null})"));
  EXPECT_FALSE(none.has_host_config);
  EXPECT_EQ(none.resources, LinuxResources());
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
  const auto body = Must(ReadCreateBody(R"({
      "Cmd": "sh", "User": "7:8",
      "HostConfig": {
        "Binds": ["/h:/b:ro,rslave,Z"],
        "Mounts": [{"Type": "bind", "Source": "/h", "Target": "/m", "ReadOnly": true,
                    "BindOptions": {"Propagation": "rshared"}},
                   {"Type": "volume", "Source": "v", "Target": "/v"}],
        "Ulimits": [{"Name": "nofile", "Hard": 20, "Soft": 10}],
        "Privileged": true, "NetworkMode": "container:s", "PidMode": "host", "IpcMode": ""}})"));
  const ContainerDetails& details = body.details;
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
  const auto body = Must(ReadCreateBody(R"({"Env": ["A=1", "UNSET", "E="]})"));
  EXPECT_EQ(body.details.environment, (Environment{{"A", "1"}, {"E", ""}}));
}

TEST(ContainerBodyTest, CpusAreAQuota) {
  const auto update = Must(ReadUpdateBody(R"({"NanoCpus": 1500000000})"));
  EXPECT_TRUE(update.has_resources);
  EXPECT_EQ(update.resources.cpu_quota, 150'000);
  EXPECT_EQ(update.resources.cpu_period, 100'000);
}

TEST(ContainerBodyTest, ARestartPolicyIsNoResource) {
  const auto update =
      Must(ReadUpdateBody(R"({"CpuShares": 0, "RestartPolicy": {"Name": "always"}})"));
  EXPECT_FALSE(update.has_resources);
}

TEST(ContainerBodyTest, RefusesWhatDockerdRefuses) {
  for (const char* const body :
       {"", "[]", "null", "{", R"({"HostConfig": 1})", R"({"HostConfig": {"CpuShares": "2"}})",
        R"({"HostConfig": {"CpusetCpus": 2}})", R"({"Env": "A=1"})", R"({"Labels": []})",
        R"({"HostConfig": {"Memory": 1.5}})"}) {
    EXPECT_EQ(ReadCreateBody(body).status().code(), StatusCode::kInvalidArgument) << body;
  }
}

// A body of 4 MiB has room for half a million, and comparing them all stops the loop for seconds.
TEST(ContainerBodyTest, FieldsAreBounded) {
  const auto fields = [](size_t count) {
    std::string all = R"("\u0061\u0062":1)";
    for (size_t i = 1; i < count; ++i)
      all += R"(,"\u0061\u0062":1)";
    return all;
  };
  const auto whole = [](const std::string& members) { return "{" + members + "}"; };
  const auto within = [](const std::string& members) {
    return R"({"HostConfig":{)" + members + "}}";
  };
  EXPECT_TRUE(ReadCreateBody(whole(fields(kMostBodyFields))).ok());
  EXPECT_TRUE(ReadCreateBody(within(fields(kMostBodyFields - 1))).ok());
  EXPECT_TRUE(ReadCreateBody(R"({"Labels":{)" + fields(2 * kMostBodyFields) + "}}").ok());
  for (const std::string& body :
       {whole(fields(kMostBodyFields + 1)), within(fields(kMostBodyFields))})
    EXPECT_EQ(ReadCreateBody(body).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadUpdateBody(whole(fields(kMostBodyFields + 1))).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(DockerLabelsTest, LabelsSayWhatAContainerIs) {
  const Identity sandbox = ReadIdentity({{"io.kubernetes.docker.type", "podsandbox"},
                                         {"io.kubernetes.container.name", "POD"},
                                         {"io.kubernetes.pod.name", "web"},
                                         {"io.kubernetes.pod.namespace", "shop"},
                                         {"io.kubernetes.pod.uid", "u1"},
                                         {"app", "web"},
                                         {"annotation.example.com/a", "b"}},
                                        "k8s_POD_web_shop_u1_0");
  EXPECT_EQ(sandbox.kind, Identity::Kind::kSandbox);
  EXPECT_EQ(sandbox.pod.name, "web");
  EXPECT_EQ(sandbox.pod.namespace_name, "shop");
  EXPECT_EQ(sandbox.pod.uid, PodUid("u1"));
  EXPECT_TRUE(sandbox.pod.labels.contains("app"));
  EXPECT_EQ(sandbox.pod.annotations, (StringMap{{"example.com/a", "b"}}));
  const Identity container = ReadIdentity({{"io.kubernetes.docker.type", "container"},
                                           {"io.kubernetes.sandbox.id", "s1"},
                                           {"io.kubernetes.container.name", "main"}},
                                          "k8s_main_web_shop_u1_3");
  EXPECT_EQ(container.kind, Identity::Kind::kContainer);
  EXPECT_EQ(container.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(container.container, "main");
  EXPECT_EQ(container.attempt, 3U);
  EXPECT_EQ(container.pod.namespace_name, "shop");
}

TEST(DockerLabelsTest, NamesHaveSixPartsOrSevenAfterAConflict) {
  const StringMap labels{{"io.kubernetes.sandbox.id", "s1"}};
  const Identity seven = ReadIdentity(labels, "k8s_main_web_shop_u1_12_5f3a9c");
  EXPECT_EQ(seven.container, "main");
  EXPECT_EQ(seven.attempt, 12U);
  const Identity other = ReadIdentity(labels, "some_name");
  EXPECT_EQ(other.kind, Identity::Kind::kContainer);
  EXPECT_EQ(other.container, "");
  EXPECT_EQ(other.attempt, 0U);
}

TEST(DockerLabelsTest, OtherContainersAreNoPods) {
  EXPECT_EQ(ReadIdentity({}, "k8s_main_web_shop_u1_0").kind, Identity::Kind::kOther);
  EXPECT_EQ(ReadIdentity({{"io.kubernetes.docker.type", "container"}}, "x").kind,
            Identity::Kind::kOther);
}

TEST(DockerLabelsTest, BothCgroupDriversTellTheClass) {
  Pod pod;
  AddCgroup("/kubepods/burstable/pod5c1d", pod);
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.uid, PodUid("5c1d"));
  Pod systemd;
  AddCgroup("kubepods-pod5c1d_2e.slice", systemd);
  EXPECT_EQ(systemd.qos, QosClass::kGuaranteed);
  EXPECT_EQ(systemd.uid, PodUid("5c1d-2e"));
  Pod best_effort;
  AddCgroup("kubepods-besteffort-pod5c1d.slice", best_effort);
  EXPECT_EQ(best_effort.qos, QosClass::kBestEffort);
}

TEST(DockerLabelsTest, ASliceIsInOthers) {
  EXPECT_EQ(WholeCgroup("kubepods-burstable-podu.slice"),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu.slice");
  EXPECT_EQ(WholeCgroup("a.slice"), "/a.slice");
  EXPECT_EQ(WholeCgroup("/kubepods/podu"), "/kubepods/podu");
  EXPECT_EQ(WholeCgroup("-.slice"), "-.slice");
  EXPECT_EQ(WholeCgroup(""), "");
}

// Any client of dockerd may send one.
TEST(DockerLabelsTest, ASliceWhosePathWouldBeTooLongIsInNoOther) {
  std::string slice;
  for (int i = 0; i < 4096; ++i)
    slice += "a-";
  slice += "a.slice";
  const std::string whole = WholeCgroup(slice);
  EXPECT_TRUE(whole == "/" + slice) << whole.size() << " bytes";
  EXPECT_TRUE(CgroupForEngine(whole, slice) == slice);
}

std::vector<std::pair<std::string, std::string>> Members(std::string_view object) {
  std::vector<std::pair<std::string, std::string>> members;
  ForEachMember(object, [&members](std::string_view name, std::string_view value) {
    members.emplace_back(name, value);
  });
  return members;
}

std::vector<std::string> Elements(std::string_view list) {
  std::vector<std::string> elements;
  ForEachElement(list, [&elements](std::string_view value) { elements.emplace_back(value); });
  return elements;
}

TEST(JsonTextTest, TakesWhatJsonIs) {
  for (const std::string_view text :
       {"null", " true ", "-0.5e+10", R"("a\u00e9\\\"")", "[]", "{}", "[[],{}]", "[1,[2],3]",
        R"({"a":{},"b":[],"c":{"d":1}})", "[ 1 , 2 ]", "\"\xff\xfe\""}) {
    EXPECT_TRUE(CheckJson(text).ok()) << text;
  }
}

TEST(JsonTextTest, RefusesWhatItIsNot) {
  for (const std::string_view text :
       {"",           " ",           "{",     "[",   "[1",    "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "[1,]",        "[,1]",  "{,}", "[,]",   "01",      "1.",
        "-",          "1e",          "+1",    "nul", "'a'",   "\"a",     "\"\n\"",
        R"("\x")",    R"("\u12g4")", "{} {}", "[]]", "{a:1}", "[1 2]",   "{\"a\":1 \"b\":2}",
        "[{]}",       "\"\\"}) {
    EXPECT_FALSE(CheckJson(text).ok()) << text;
  }
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_TRUE(CheckJson(deepest).ok());
  EXPECT_FALSE(CheckJson("[" + deepest + "]").ok());
}

TEST(JsonTextTest, FindsMembersAndElementsWhereTheyLie) {
  EXPECT_THAT(Members(R"({ "a" : 1, "b\"" :{"c": [1, 2]} ,"a":null })"),
              ElementsAre(Pair(R"("a")", "1"), Pair(R"("b\"")", R"({"c": [1, 2]})"),
                          Pair(R"("a")", "null")));
  EXPECT_THAT(Members("{ }"), ElementsAre());
  EXPECT_THAT(Elements(R"([ "a]" ,{"b":[]}, 1.50 ])"),
              ElementsAre(R"("a]")", R"({"b":[]})", "1.50"));
  EXPECT_THAT(Elements("[]"), ElementsAre());
}

TEST(JsonTextTest, DecodesTexts) {
  EXPECT_EQ(DecodeJsonText(R"("a\n\/\u00e9\ud83d\ude00")"), "a\n/\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(DecodeJsonText(R"("\ud83dx\udc00")"), "\xEF\xBF\xBDx\xEF\xBF\xBD");
  EXPECT_EQ(DecodeJsonText(EncodeJsonText("a\"\\\x01\xC3\xA9")), "a\"\\\x01\xC3\xA9");
}

TEST(JsonTextTest, NamesAreFieldsAsGoReadsThem) {
  EXPECT_TRUE(IsField(R"("CpusetCpus")", "CpusetCpus"));
  EXPECT_TRUE(IsField(R"("cpusetCPUS")", "CpusetCpus"));
  EXPECT_TRUE(IsField(R"("\u0043pu\u017fetCpus")", "CpusetCpus"));
  EXPECT_TRUE(IsField("\"Networ\xE2\x84\xAAMode\"", "NetworkMode"));
  EXPECT_FALSE(IsField(R"("CpusetCpu")", "CpusetCpus"));
}

}  // namespace
}  // namespace resmgr::docker
