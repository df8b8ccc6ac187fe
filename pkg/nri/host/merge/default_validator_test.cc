// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/default_validator.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/messages.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Fails;
using resmgr::test::IsOk;
using testing::AllOf;
using testing::HasSubstr;

using Validation = api::ValidateContainerAdjustmentRequest;
const std::vector<std::string> kNone;

Status Check(const NriValidatorConfig& config, std::string_view text,
             const std::vector<std::string>& present = kNone,
             const std::vector<std::string>& required = kNone) {
  const auto request = Make<Validation>(text);
  return DefaultValidator(config, required)
      .Check({.pod = request.pod(),
              .container = request.container(),
              .adjustment = request.adjust(),
              .owners = [&] { return request.owners(); }},
             present);
}

constexpr std::string_view kHooks = R"(
  container { id: "c" } adjust { hooks { poststop { path: "/h" } } }
  owners { owners { key: "c" value { simple { key: 3 value: "10-a,20-b" } } } })";
constexpr std::string_view kNamespaces = R"(
  container { id: "c" } adjust { linux { namespaces { type: "-pid" } namespaces { type: "net" } } }
  owners { owners { key: "c" value { compound { key: 33 value {
    owners { key: "pid" value: "-20-b" } owners { key: "net" value: "10-a" } } } } } })";
constexpr std::string_view kSysctls = R"(
  container { id: "c" } adjust { linux { sysctl { key: "a.b" value: "1" } } }
  owners { owners { key: "c" value { compound { key: 34 value {
    owners { key: "a.b" value: "10-a" } } } } } })";

TEST(DefaultValidatorTest, RejectsNothingByDefault) {
  for (const std::string_view request : {kHooks, kNamespaces, kSysctls})
    EXPECT_THAT(Check({}, request), IsOk());
  EXPECT_THAT(Check({}, "adjust { linux { seccomp_policy {} } }"), IsOk());
}

TEST(DefaultValidatorTest, RejectsWhatIsConfiguredAndNamesThePlugins) {
  const NriValidatorConfig hooks{.reject_oci_hooks = true};
  EXPECT_THAT(Check(hooks, kHooks),
              Fails(StatusCode::kFailedPrecondition,
                    "default validator: \"10-a,20-b\" may not change OCI hooks"));
  EXPECT_THAT(Check(hooks, "adjust { hooks {} }"), IsOk());
  EXPECT_THAT(Check(hooks, kNamespaces), IsOk());

  const NriValidatorConfig namespaces{.reject_namespaces = true};
  EXPECT_THAT(Check(namespaces, kNamespaces),
              Fails(StatusCode::kFailedPrecondition,
                    "default validator: \"10-a,20-b\" may not change namespaces"));
  EXPECT_THAT(Check(namespaces, kSysctls), IsOk());

  const NriValidatorConfig sysctls{.reject_sysctls = true};
  EXPECT_THAT(Check(sysctls, kSysctls),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("\"10-a\" may not change sysctls")));
  EXPECT_THAT(Check(sysctls, kHooks), IsOk());
}

TEST(DefaultValidatorTest, ASeccompPolicyIsRejectedByTheProfileThatItReplaces) {
  const auto changes = [](std::string_view profile) {
    return "container { id: 'c' linux { " + std::string(profile) +
           " } } adjust { linux { seccomp_policy { default_action: 'x' } } } "
           "owners { owners { key: 'c' value { simple { key: 32 value: '10-a' } } } }";
  };
  const std::string runtime_default =
      changes("seccomp_profile { profile_type: PROFILE_RUNTIME_DEFAULT }");
  const std::string unconfined = changes("seccomp_profile { profile_type: PROFILE_UNCONFINED }");
  const std::string none = changes("");
  const std::string custom =
      changes("seccomp_profile { profile_type: PROFILE_LOCALHOST localhost_ref: 'x' }");
  struct Row {
    NriValidatorConfig options;
    bool runtime_default;
    bool unconfined;
    bool custom;
  };
  for (const Row& row : {Row{{.reject_runtime_default_seccomp = true}, true, false, false},
                         Row{{.reject_unconfined_seccomp = true}, false, true, false},
                         Row{{.reject_custom_seccomp = true}, false, false, true}}) {
    EXPECT_NE(Check(row.options, runtime_default).ok(), row.runtime_default);
    EXPECT_NE(Check(row.options, unconfined).ok(), row.unconfined);
    EXPECT_NE(Check(row.options, none).ok(), row.unconfined);
    EXPECT_NE(Check(row.options, custom).ok(), row.custom);
    EXPECT_THAT(Check(row.options, "adjust { linux { oom_score_adj {} } }"), IsOk());
  }
  EXPECT_THAT(
      Check({.reject_custom_seccomp = true}, custom),
      Fails(StatusCode::kFailedPrecondition, AllOf(HasSubstr("\"10-a\""), HasSubstr("Localhost"))));
}

Status Required(const std::vector<std::string>& required, std::string_view annotations,
                const std::vector<std::string>& present, const NriValidatorConfig& config = {}) {
  const std::string request =
      "pod { " + std::string(annotations) + " } container { id: 'c' name: 'web' }";
  return Check(config, request, present, required);
}

TEST(DefaultValidatorTest, RequiredPluginsMustHaveTakenPart) {
  const std::vector<std::string> required{"logger", "20-cpu-set"};
  EXPECT_THAT(Required(required, "", {}),
              Fails(StatusCode::kFailedPrecondition,
                    "default validator: required plugins are missing: logger, 20-cpu-set"));
  EXPECT_THAT(Required(required, "", {"10-logger", "21-cpu-set"}),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("missing: 20-cpu-set")));
  EXPECT_THAT(Required(required, "", {"10-logger", "20-cpu-set"}), IsOk());
}

TEST(DefaultValidatorTest, APodMayRequireMore) {
  const std::string key = "annotations { key: 'required-plugins.noderesource.dev";
  const std::string of_pod = key + "' value: '[\"a\", 10-b]' }";
  EXPECT_THAT(Required({}, of_pod, {}),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("a, 10-b")));
  EXPECT_THAT(Required({}, of_pod, {"00-a", "10-b"}), IsOk());
  EXPECT_THAT(Required({}, key + "' value: '' }", {}), IsOk());
  EXPECT_THAT(Required({}, key + "' value: '- a\\n- b' }", {"00-a"}),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("missing: b")));
  // The most specific suffix counts.
  const std::string of_all = key + "' value: '[a]' } " + key + "/pod' value: '[b]' } ";
  EXPECT_THAT(Required({}, of_all, {"10-b"}), IsOk());
  EXPECT_THAT(Required({}, of_all + key + "/container.web' value: '[c]' }", {"10-c"}), IsOk());
  EXPECT_THAT(Required({}, of_all + key + "/container.other' value: '[c]' }", {"10-b"}), IsOk());
}

TEST(DefaultValidatorTest, AnAnnotationThatCannotBeReadIsRefused) {
  const std::string key = "annotations { key: 'required-plugins.noderesource.dev' value: '";
  for (const std::string& value : {std::string("a"), std::string("{a: b}"), std::string("[[a]]"),
                                   std::string("[a"), "[" + std::string(20'000, 'a') + "]"}) {
    EXPECT_THAT(Required({}, key + value + "' }", {"10-a"}),
                Fails(StatusCode::kInvalidArgument, HasSubstr("required-plugins")))
        << value.substr(0, 9);
  }
}

TEST(DefaultValidatorTest, ThatPluginsAreMissingMayBeTolerated) {
  const NriValidatorConfig config{.tolerate_missing_annotation = "tolerate"};
  const auto says = [](std::string_view key, std::string_view value) {
    return "annotations { key: '" + std::string(key) + "' value: '" + std::string(value) + "' } ";
  };
  EXPECT_THAT(Required({"a"}, says("tolerate", "true"), {}, config), IsOk());
  EXPECT_FALSE(Required({"a"}, says("tolerate", "false"), {}, config).ok());
  EXPECT_THAT(Required({"a"}, says("tolerate/container.web", "true"), {}, config), IsOk());
  EXPECT_FALSE(
      Required({"a"}, says("tolerate", "true") + says("tolerate/pod", "false"), {}, config).ok());
  EXPECT_THAT(Required({"a"}, says("tolerate", "maybe"), {"10-a"}, config),
              Fails(StatusCode::kInvalidArgument, HasSubstr("\"maybe\"")));
  // Without the node's option a pod cannot use it.
  EXPECT_FALSE(Required({"a"}, says("", "true"), {}).ok());
}

}  // namespace
}  // namespace resmgr::nri
