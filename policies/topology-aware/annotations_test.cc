// SPDX-License-Identifier: Apache-2.0
// Annotations of pods about their placement, and their consequences for the class.
#include "pkg/kube/annotations.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/pod_annotation.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/policy/expression.h"
#include "policies/topology-aware/affinity.h"
#include "policies/topology-aware/need.h"
#include "policies/topology-aware/options.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Pod PodWith(StringMap annotations) {
  Pod pod;
  pod.id = PodSandboxId("sandbox");
  pod.uid = PodUid("uid");
  pod.name = "web";
  pod.namespace_name = "shop";
  pod.qos = QosClass::kGuaranteed;
  pod.labels = {{"app.kubernetes.io/name", "shop"}};
  pod.annotations = std::move(annotations);
  return pod;
}

Container ContainerWith(std::string name, int64_t milli_cpu) {
  Container container;
  container.name = std::move(name);
  container.pod_id = PodSandboxId("sandbox");
  container.labels = {{"role", "db"}};
  container.requirements.cpu_request = container.requirements.cpu_limit = MilliCpu{milli_cpu};
  return container;
}

std::string OptionsError(std::string_view section) {
  const StatusOr<ConfigNode> node = ParseYaml(section, "test.yaml");
  EXPECT_TRUE(node.ok()) << node.status();
  return std::string(Message(ReadTopologyAwareOptions(&*node).status()));
}

TEST(TopologyAwareOptionsTest, ReadsAllKeysWithoutRegardToCase) {
  const ConfigNode node = Must(ParseYaml(
      "{pinCPU: false, PinMemory: false, preferIsolatedCPUs: false, PreferSharedCPUs: true, "
      "colocatePods: true, ColocateNamespaces: true, reservedPoolNamespaces: [a, 'b-*'], "
      "privilegedNamespaces: [c], "
      "defaultCPUPriority: low, unlimitedBurstable: l3cache, cpuQuota: keep}",
      "test.yaml"));
  const TopologyAwareOptions options = Must(ReadTopologyAwareOptions(&node));
  EXPECT_FALSE(options.pin_cpu || options.pin_memory || options.prefer_isolated);
  EXPECT_TRUE(options.prefer_shared && options.colocate_pods && options.colocate_namespaces);
  EXPECT_THAT(options.reserved_namespaces, testing::ElementsAre("a", "b-*"));
  Pod pod;
  pod.namespace_name = "c";
  EXPECT_TRUE(options.privileged.Include(pod));
  pod.namespace_name = "kube-system";
  EXPECT_FALSE(options.privileged.Include(pod)) << "the list replaces the default";
  EXPECT_EQ(options.default_priority, CpuPriority::kLow);
  EXPECT_EQ(options.unlimited_burstable, PoolLevel::kL3);
  EXPECT_FALSE(options.lift_quota);
}

TEST(TopologyAwareOptionsTest, NamesWhatIsWrongWithItsPlace) {
  EXPECT_THAT(OptionsError("PinCPU: maybe"),
              HasSubstr("test.yaml:1: policy.topology-aware.PinCPU"));
  EXPECT_THAT(OptionsError("PinCPUs: true"), HasSubstr("PinCPUs"));
  EXPECT_THAT(OptionsError("\npodQoSSchedulingClasses: {}"), HasSubstr("test.yaml:2"));
  EXPECT_THAT(OptionsError("cpuClasses: [{name: a, sstClosID: 1}]"), HasSubstr("not supported"));
  EXPECT_THAT(OptionsError("availableResources: {cpu: 2}"), HasSubstr("policy.AvailableResources"));
}

TEST(OptionsTest, KubeletIsAskedWhereTheSectionSaysSo) {
  const auto asks = [](std::string_view section) {
    const ConfigNode node = *ParseYaml(section, "test.yaml");
    return ReadTopologyAwareOptions(&node)->pod_resource_api;
  };
  EXPECT_FALSE(asks("PinCPU: true"));
  EXPECT_TRUE(asks("agent: {podResourceAPI: true}"));
  EXPECT_THAT(OptionsError("agent: {nodeResourceTopology: true}"),
              HasSubstr("nodeResourceTopology"));
}

TEST(PreferencesTest, TheNarrowestScopeWins) {
  const Pod pod = PodWith({{"prefer-shared-cpus.resource-policy.nri.io", "true"},
                           {"prefer-shared-cpus.resource-policy.nri.io/container.c", "false"},
                           {"memory-type.cri-resource-manager.intel.com/pod", "hbm,DRAM"}});
  EXPECT_EQ(ReadPreferences(pod, "c").shared, false);
  EXPECT_EQ(ReadPreferences(pod, "d").shared, true);
  EXPECT_EQ(ReadPreferences(pod, "d").memory_types, kHbmBit | kDramBit);
}

TEST(PreferencesTest, ReadsTheOldForm) {
  const Pod pod = PodWith({{"cri-resource-manager.intel.com/prefer-isolated-cpus", "c: true\n"},
                           {"cri-resource-manager.intel.com/cold-start", "c: {duration: 60s}"}});
  EXPECT_EQ(ReadPreferences(pod, "c").isolated, true);
  EXPECT_EQ(ReadPreferences(pod, "c").cold_start, std::chrono::seconds(60));
  EXPECT_EQ(ReadPreferences(pod, "d").isolated, std::nullopt);
}

TEST(PreferencesTest, NotesWhatItCannotRead) {
  const Pod pod = PodWith({{"cri-resource-manager.intel.com/prefer-shared-cpus", "c: perhaps"},
                           {"memory-type.resource-policy.nri.io", "tape"},
                           {"cri-resource-manager.intel.com/hide-hyperthreads", "[: }"},
                           {"cold-start.resource-policy.nri.io", "duration: 2h"},
                           {"toptierlimit.resource-policy.nri.io", "1G"}});
  const Preferences preferences = ReadPreferences(pod, "c");
  EXPECT_EQ(preferences.shared, std::nullopt);
  EXPECT_EQ(preferences.memory_types, std::nullopt);
  EXPECT_FALSE(preferences.hide_hyperthreads);
  EXPECT_EQ(preferences.cold_start.count(), 0);
  EXPECT_THAT(preferences.notes, SizeIs(5));
}

// MistypedAnnotations tells of a value that is neither true nor false, under each policy.
TEST(PreferencesTest, BooleansAreReadAsByTheOtherPolicies) {
  constexpr const char* kKey = "prefer-shared-cpus.resource-policy.nri.io";
  for (const char* const text : {"true", " yes\n", "'true'", "true # comment", "[true]", "maybe",
                                 "tru#e", "null", "--- true", "# true", ""}) {
    const Pod pod = PodWith({{kKey, text}});
    const Preferences preferences = ReadPreferences(pod, "c");
    EXPECT_EQ(preferences.shared, ReadBoolAnnotation(pod.annotations, "prefer-shared-cpus", "c"))
        << text;
    EXPECT_THAT(preferences.notes, SizeIs(0)) << text;
    const bool told = !MistypedAnnotations(pod.annotations).empty();
    const bool absent = std::string_view(text).empty() || text[0] == '#';
    EXPECT_EQ(told, !preferences.shared && !absent) << text;
  }
}

TEST(PreferencesTest, SingleWordsAreReadAsYamlReadsThem) {
  for (const char* const text : {"dram,pmem", "'dram,pmem'", " dram,pmem ", "dram,pmem # both"}) {
    const Pod pod = PodWith({{"memory-type.resource-policy.nri.io", text}});
    EXPECT_EQ(ReadPreferences(pod, "c").memory_types, kDramBit | kPmemBit) << text;
  }
  for (const char* const text : {"null", "Null", "~", ""}) {
    const Preferences none =
        ReadPreferences(PodWith({{"memory-type.resource-policy.nri.io", text}}), "c");
    EXPECT_EQ(none.memory_types, std::nullopt) << text;
    EXPECT_THAT(none.notes, SizeIs(0)) << text;
  }
}

TEST(PreferencesTest, ReadsDurationsOfColdStarts) {
  const auto read = [](const std::string& duration) {
    const Pod pod =
        PodWith({{"cold-start.resource-policy.nri.io", fmt::format("duration: {}", duration)}});
    const Preferences preferences = ReadPreferences(pod, "c");
    EXPECT_EQ(preferences.notes.empty(), preferences.cold_start.count() > 0) << duration;
    return preferences.cold_start.count();
  };
  EXPECT_EQ(read("500ms"), 500);
  EXPECT_EQ(read("1m30s"), 90'000);
  EXPECT_EQ(read("1h"), 3'600'000);
  for (const char* const wrong : {"1h1ms", "0s", "60", "[5s]", "''"})
    EXPECT_EQ(read(wrong), 0) << wrong;
}

TEST(PreferencesTest, FiltersHintsByKindAndPath) {
  const Pod pod =
      PodWith({{"topologyhints.resource-policy.nri.io", "[devices]"},
               {"deny.topologyhints.resource-policy.nri.io", "{type: prefix, paths: [/dev/shm]}"},
               {"allow.topologyhints.resource-policy.nri.io",
                "{type: glob, paths: ['/dev/s*', '/dev/nvme?']}"}});
  const HintFilter filter = ReadPreferences(pod, "c").hints;
  EXPECT_TRUE(filter.Accepts("device /dev/sda"));
  EXPECT_TRUE(filter.Accepts("device /dev/nvme0"));
  EXPECT_FALSE(filter.Accepts("device /dev/shm0"));
  EXPECT_FALSE(filter.Accepts("device /dev/vda"));
  EXPECT_FALSE(filter.Accepts("mount /dev/sda"));
  const Pod none = PodWith({{"topologyhints.cri-resource-manager.intel.com", "false"}});
  EXPECT_FALSE(ReadPreferences(none, "c").hints.Accepts("device /dev/sda"));
}

TEST(PreferencesTest, HintsWithoutASourceAreNoted) {
  const Pod pod = PodWith({{"topologyhints.resource-policy.nri.io", "pod-resources, mounts"},
                           {"deny.topologyhints.resource-policy.nri.io",
                            "{type: prefix, paths: ['podresapi:nvidia.com/gpu']}"}});
  const Preferences preferences = ReadPreferences(pod, "c");
  EXPECT_TRUE(preferences.hints.Accepts("mount /data"));
  EXPECT_FALSE(preferences.hints.Accepts("device /dev/sda"));
  EXPECT_THAT(preferences.notes, ElementsAre(HasSubstr("pod-resources"), HasSubstr("podresapi:")));
  for (const char* const text : {"all", "true", "none", "[mounts, devices]"}) {
    const Pod plain = PodWith({{"topologyhints.resource-policy.nri.io", text}});
    EXPECT_THAT(ReadPreferences(plain, "c").notes, SizeIs(0)) << text;
  }
}

TEST(PreferencesTest, FiltersOfHintsWithoutAListOfPathsAreIgnored) {
  for (const char* const text : {"{type: glob}", "{paths: ~}", "{paths: {a: b}}", "{paths: [a: b]}",
                                 "{paths: [[/dev]]}", "{paths: [/dev/sdb, ~]}", "[/dev]"}) {
    for (const char* const key : {"allow.topologyhints.resource-policy.nri.io",
                                  "deny.topologyhints.resource-policy.nri.io"}) {
      const Preferences preferences = ReadPreferences(PodWith({{key, text}}), "c");
      EXPECT_TRUE(preferences.hints.Accepts("device /dev/sda")) << key << text;
      EXPECT_THAT(preferences.notes, ElementsAre(HasSubstr("it needs a list of paths"))) << text;
    }
  }
}

TEST(PreferencesTest, FiltersOfHintsAreOfATypeThatIsKnown) {
  constexpr const char* kAllow = "allow.topologyhints.resource-policy.nri.io";
  const Preferences globs =
      ReadPreferences(PodWith({{kAllow, "{type: Glob, paths: ['/dev/*a']}"}}), "c");
  EXPECT_TRUE(globs.hints.Accepts("device /dev/sda"));
  EXPECT_FALSE(globs.hints.Accepts("device /dev/sdb"));
  EXPECT_THAT(globs.notes, SizeIs(0));
  for (const auto& [text, note] :
       {std::pair("{type: regexp, paths: ['/dev/.*a']}", "its type is neither prefix nor glob"),
        std::pair("{type: [glob], paths: ['/dev/*a']}", "its type is neither prefix nor glob"),
        std::pair("{type: glob, paths: ['/dev/sd[a']}", "has [ without ]")}) {
    const Preferences ignored = ReadPreferences(PodWith({{kAllow, text}}), "c");
    EXPECT_TRUE(ignored.hints.Accepts("device /dev/sda")) << text;
    EXPECT_THAT(ignored.notes, ElementsAre(HasSubstr(note))) << text;
  }
}

TEST(PreferencesTest, FiltersHintsOfTheKubelet) {
  const std::string gpu = "pod-resources podresourceapi:vendor.com/gpu";
  const auto filter = [](StringMap annotations) {
    return ReadPreferences(PodWith(std::move(annotations)), "c", true);
  };
  EXPECT_TRUE(filter({}).hints.Accepts(gpu));
  const Preferences only = filter({{"topologyhints.resource-policy.nri.io", "pod-resources"}});
  EXPECT_TRUE(only.hints.Accepts(gpu));
  EXPECT_FALSE(only.hints.Accepts("device /dev/sda"));
  EXPECT_THAT(only.notes, SizeIs(0));
  EXPECT_FALSE(
      filter({{"topologyhints.resource-policy.nri.io", "mounts, devices"}}).hints.Accepts(gpu));
  for (const std::string prefix : {"podresapi:", "podresourceapi:"}) {
    const Preferences deny = filter({{"deny.topologyhints.resource-policy.nri.io",
                                      "{type: glob, paths: [\"" + prefix + "vendor.com/*\"]}"}});
    EXPECT_FALSE(deny.hints.Accepts(gpu));
    EXPECT_TRUE(deny.hints.Accepts("pod-resources podresourceapi:other.com/nic"));
    EXPECT_THAT(deny.notes, SizeIs(0));
  }
}

TEST(PreferencesTest, UnknownKindsOfHintsLeaveAllOfThem) {
  const Preferences preferences =
      ReadPreferences(PodWith({{"topologyhints.resource-policy.nri.io", "mounts, device"}}), "c");
  EXPECT_TRUE(preferences.hints.Accepts("device /dev/sda"));
  EXPECT_THAT(preferences.notes, ElementsAre(HasSubstr("topologyhints ignored")));
}

struct ClassCase {
  int64_t milli_cpu;
  const char* shared;    // annotation, "" for none
  const char* isolated;  // likewise
  int full;
  int64_t fraction;
  bool wants_isolated;
};

TEST(NeedTest, SplitsGuaranteedRequestsAsThePeersDo) {
  const ClassCase cases[] = {
      {500, "", "", 0, 500, false},          {1000, "", "", 1, 0, true},
      {1000, "", "false", 1, 0, false},      {1000, "true", "", 0, 1000, false},
      {1000, "false", "true", 1, 0, true},   {1500, "", "", 1, 500, true},
      {1500, "true", "", 0, 1500, false},    {2000, "", "", 2, 0, false},
      {2000, "", "true", 2, 0, true},        {2000, "true", "", 0, 2000, false},
      {2400, "", "", 0, 2400, false},        {2400, "false", "", 2, 400, false},
      {2400, "false", "true", 2, 400, true},
  };
  for (const ClassCase& c : cases) {
    StringMap annotations;
    if (*c.shared != '\0') annotations.Set("prefer-shared-cpus.resource-policy.nri.io", c.shared);
    if (*c.isolated != '\0')
      annotations.Set("prefer-isolated-cpus.resource-policy.nri.io", c.isolated);
    const Pod pod = PodWith(annotations);
    const Need need = DecideNeed(pod, ContainerWith("c", c.milli_cpu), ReadPreferences(pod, "c"),
                                 TopologyAwareOptions(), true);
    SCOPED_TRACE(testing::Message() << c.milli_cpu << " " << c.shared << " " << c.isolated);
    EXPECT_EQ(need.full, c.full);
    EXPECT_EQ(need.fraction, c.fraction);
    EXPECT_EQ(need.isolated, c.wants_isolated);
  }
}

TEST(NeedTest, OnlyGuaranteedPodsGetExclusiveCpus) {
  Pod pod = PodWith({});
  pod.qos = QosClass::kBurstable;
  const Need need =
      DecideNeed(pod, ContainerWith("c", 2000), Preferences(), TopologyAwareOptions(), true);
  EXPECT_EQ(need.cpu_class, CpuClass::kShared);
  EXPECT_EQ(need.cpu_limit, 2000);
}

TEST(NeedTest, ReservedNamespacesAreGlobs) {
  TopologyAwareOptions options;
  options.reserved_namespaces = {"sh*"};
  const auto class_of = [&options](const Pod& pod, bool has_reserved) {
    return DecideNeed(pod, ContainerWith("c", 500), ReadPreferences(pod, "c"), options,
                      has_reserved)
        .cpu_class;
  };
  EXPECT_EQ(class_of(PodWith({}), true), CpuClass::kReserved);
  EXPECT_EQ(class_of(PodWith({}), false), CpuClass::kShared);
  EXPECT_EQ(class_of(PodWith({{"prefer-reserved-cpus.resource-policy.nri.io", "false"}}), true),
            CpuClass::kShared);
}

StatusOr<bool> Holds(std::string_view expression) {
  const StatusOr<ConfigNode> node = ParseYaml(expression, "annotation");
  EXPECT_TRUE(node.ok()) << node.status();
  RESMGR_ASSIGN_OR_RETURN(const Expression parsed, Expression::Parse(*node));
  return parsed.Holds(PodWith({}), ContainerWith("db", 0));
}

TEST(ExpressionTest, ComparesWhatKeysName) {
  for (const char* const text : {
           "{key: name, operator: Equals, values: [db]}",
           "{key: name, operator: equals, values: db}",
           "{key: namespace, operator: NotEqual, values: [prod]}",
           "{key: qosclass, operator: In, values: [Burstable, Guaranteed]}",
           "{key: labels/role, operator: Exists}",
           "{key: labels/none, operator: NotExists}",
           "{key: labels/none, operator: NotExist}",
           "{key: labels/none, operator: NotIn, values: [a]}",
           "{key: pod/labels/app.kubernetes.io/name, operator: Matches, values: ['sh*']}",
           "{key: pod/name, operator: MatchesNot, values: ['sh*']}",
           "{key: pod/name, operator: MatchesAny, values: ['x*', 'w?b']}",
           "{key: uid, operator: MatchesNone, values: ['x*']}",
           "{operator: AlwaysTrue}",
           "{key: ':pod/name:name', operator: Equals, values: ['web:db']}",
           "{key: ',-pod/name,name', operator: Equals, values: [web-db]}",
           "{key: ':,-pod/name,name', operator: Equals, values: [web-db]}",
       }) {
    const StatusOr<bool> holds = Holds(text);
    EXPECT_TRUE(holds.ok() && *holds) << text << " " << holds.status();
  }
  for (const char* const text : {
           "{key: name, operator: Equals, values: [d]}",
           "{key: tags/AVX512, operator: Exists}",
           "{key: labels/none, operator: Matches, values: ['*']}",
           "{key: name, operator: NotIn, values: [db]}",
       }) {
    const StatusOr<bool> holds = Holds(text);
    EXPECT_TRUE(holds.ok() && !*holds) << text;
  }
}

TEST(ExpressionTest, RefusesWhatItDoesNotKnow) {
  for (const char* const text : {"{key: name, operator: Like, values: [a]}", "{key: name}", "[a]",
                                 "{key: name, operator: Equals}", "{operator: Exists}",
                                 "{key: name, operator: Equals, values: [a, b]}",
                                 "{key: name, operator: Exists, values: [a]}",
                                 "{key: name, operator: Exists, color: red}"}) {
    EXPECT_FALSE(Holds(text).ok()) << text;
  }
}

TEST(AffinityTest, ReadsBothForms) {
  const Pod pod = PodWith({{"resource-policy.nri.io/affinity",
                            "a: [db, c]\n"
                            "b:\n- match: {key: name, operator: Equals, values: [db]}\n"
                            "  weight: 5000\n"},
                           {"resource-policy.nri.io/anti-affinity", "b: db"}});
  const Container db = ContainerWith("db", 0);
  const PodAffinities read = Must(PodAffinities::Read(pod.annotations));
  EXPECT_EQ(read.size(), 6U);
  const auto short_form = read.Of("a").value();
  ASSERT_THAT(short_form, SizeIs(1));
  EXPECT_EQ(short_form[0].weight, 1);
  EXPECT_TRUE(short_form[0].Meets(pod, pod, db));
  Pod other = pod;
  other.id = PodSandboxId("another");
  EXPECT_FALSE(short_form[0].Meets(pod, other, db)) << "the default scope is the pod";

  const auto full = read.Of("b").value();
  ASSERT_THAT(full, SizeIs(2));
  EXPECT_EQ(full[0].weight, Affinity::kMaxWeight);
  EXPECT_EQ(full[1].weight, -1);

  EXPECT_THAT(read.Of("db").value(), SizeIs(2)) << "short forms are meant in both directions";
  EXPECT_THAT(read.Of("z").value(), SizeIs(0));
}

TEST(AffinityTest, OneContainerHasSoManyAtMost) {
  std::string text = "b: [c]\na:\n";
  for (size_t i = 0; i <= PodAffinities::kMaxOfOne; ++i)
    text += "- {match: {operator: AlwaysTrue}}\n";
  const PodAffinities read = Must(PodAffinities::Read({{"resource-policy.nri.io/affinity", text}}));
  EXPECT_FALSE(read.Of("a").ok());
  EXPECT_TRUE(read.Of("b").ok());
}

// A text that is too long is not parsed: else the error would be invalid YAML.
TEST(AffinityTest, TextsThatAreTooLongAreNotParsed) {
  const std::string half(PodAffinities::kMaxText / 2, '{');
  const StringMap both = {{"resource-policy.nri.io/affinity", half},
                          {"resource-policy.nri.io/anti-affinity", half + "{"}};
  const Status status = PodAffinities::Read(both).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "they have 16385 bytes, 16384 at most are read");
  const StringMap fits = {{"resource-policy.nri.io/affinity",
                           "a: b\n#" + std::string(PodAffinities::kMaxText - 6, 'x')}};
  EXPECT_TRUE(PodAffinities::Read(fits).ok());
}

TEST(AffinityTest, APodHasSoManyAtMost) {
  const auto read = [](size_t names) {
    std::string text = "a: [";
    for (size_t i = 0; i < names; ++i)
      text += fmt::format("c{},", i);
    return PodAffinities::Read({{"resource-policy.nri.io/affinity", text + "]"}});
  };
  // Each name counts in both directions, and "a" itself has one.
  EXPECT_TRUE(read(PodAffinities::kMaxOfPod - 1).ok());
  const Status status = read(PodAffinities::kMaxOfPod).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "the pod has more than 512 affinities");
  // The text may name more than the limit.
  EXPECT_FALSE(read(2500).ok());
}

TEST(AffinityTest, RefusesWhatItCannotRead) {
  for (const char* const text : {"[a, b]", "a: {b: c}", "a: [{weight: 1}]", "a: [{match: 1}]",
                                 "a: [{match: {operator: AlwaysTrue}, weight: heavy}]", "{"}) {
    EXPECT_FALSE(PodAffinities::Read({{"resource-policy.nri.io/affinity", text}}).ok()) << text;
  }
}

TEST(AffinityReaderTest, RemembersNoMoreThanItReads) {
  AffinityReader reader;
  EXPECT_TRUE(reader.Read({}, "a").value().empty());
  // More texts than it remembers, and twice, so that some come back after they were forgotten.
  for (size_t i = 0; i < 3 * AffinityReader::kRemembered; ++i) {
    const int weight = static_cast<int>(i % (2 * AffinityReader::kRemembered)) + 1;
    const StringMap annotations = {
        {"resource-policy.nri.io/affinity",
         fmt::format("a: [{{match: {{operator: AlwaysTrue}}, weight: {}}}]", weight)}};
    if (i % 2 == 0) reader.Prepare(annotations);
    for (int pass = 0; pass < 2; ++pass) {
      const auto read = reader.Read(annotations, "a");
      ASSERT_TRUE(read.ok() && read->size() == 1);
      EXPECT_EQ((*read)[0].weight, weight);
      EXPECT_TRUE(reader.Read(annotations, "b").value().empty()) << "another container's";
    }
  }
  const StringMap broken = {{"cri-resource-manager.intel.com/anti-affinity", "[a]"},
                            {"resource-policy.nri.io/affinity", "a: b"}};
  EXPECT_FALSE(reader.Read(broken, "a").ok());
  EXPECT_FALSE(reader.Read(broken, "a").ok());
}

TEST(AffinityReaderTest, ReadsWhatItDoesNotRemember) {
  AffinityReader reader;
  const StringMap long_text = {{"resource-policy.nri.io/affinity",
                                "a: b\n#" + std::string(AffinityReader::kMaxRememberedSize, 'x')}};
  std::string names;
  for (size_t i = 0; i < AffinityReader::kMaxRememberedAffinities; ++i)
    names += fmt::format("c{}, ", i);
  const StringMap many = {{"resource-policy.nri.io/affinity", fmt::format("a: [{}b]", names)}};
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(reader.Read(long_text, "a").value(), SizeIs(1));
    EXPECT_THAT(reader.Read(many, "a").value(), SizeIs(1));
    EXPECT_THAT(reader.Read(many, "c7").value(), SizeIs(1));
  }
}

}  // namespace
}  // namespace resmgr
