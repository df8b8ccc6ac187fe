// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/planned_container.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

HostPodPtr PodOf(const std::string& text) {
  auto pod = std::make_shared<HostPod>(std::make_shared<uint64_t>(0));
  pod->message.Edit() = Make<api::PodSandbox>(text);
  return pod;
}

class PlannedContainerTest : public testing::Test {
 protected:
  PlannedContainerTest() {
    const HostPodPtr pod = PodOf("id: 'pod' name: 'p'");
    CreateRequest create;
    create.pod_id = PodSandboxId("pod");
    create.name = "app\xff";
    ContainerDetails details;
    details.image = "app:1";
    details.args = {"-v"};
    details.environment = {{"A", "1"}};
    details.security.seccomp = SeccompProfile{.kind = SeccompProfile::Kind::kUnconfined};
    planned_.emplace(pod, std::move(create),
                     std::make_shared<const ContainerDetails>(std::move(details)));
    planned_->SetId("alias");
  }

  api::CreateContainerRequest Asked() const {
    api::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(planned_->Question()));
    return request;
  }

  std::optional<PlannedContainer> planned_;
};

TEST_F(PlannedContainerTest, IsAskedAboutAsItIsShown) {
  for (const bool known : {false, true}) {
    if (known) {
      planned_->SetImage({.entrypoint = {"/app"},
                          .command = {"unused"},
                          .environment = {{"PATH", "/bin"}},
                          .digest = {}});
    }
    const api::Container made = planned_->Make();
    EXPECT_EQ(made.id(), "alias");
    EXPECT_EQ(made.name(), "app\xef\xbf\xbd");
    EXPECT_EQ(made.pod_sandbox_id(), "pod");
    if (known) {
      EXPECT_THAT(made.args(), testing::ElementsAre("/app", "-v"));
      EXPECT_THAT(made.env(), testing::ElementsAre("PATH=/bin", "A=1"));
    } else {
      EXPECT_THAT(made.args(), testing::IsEmpty()) << "the program is not known";
      EXPECT_THAT(made.env(), testing::ElementsAre("A=1"));
    }
    const api::CreateContainerRequest asked = Asked();
    EXPECT_EQ(asked.pod().ShortDebugString(), planned_->pod().ShortDebugString());
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(asked.container(), made))
        << asked.container().ShortDebugString();
  }
}

TEST_F(PlannedContainerTest, ItsOutlineIsWhatValidatorsOfOurOwnRead) {
  const api::Container made = planned_->Make();
  api::Container expected;
  expected.set_id(made.id());
  expected.set_name(made.name());
  ASSERT_TRUE(made.linux().has_seccomp_profile());
  *expected.mutable_linux()->mutable_seccomp_profile() = made.linux().seccomp_profile();
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(expected, planned_->MakeOutline()));
}

TEST_F(PlannedContainerTest, ItsOutlineHasNoProfileWhereTheRequestHasNone) {
  const HostPodPtr pod = PodOf("id: 'pod'");
  PlannedContainer planned(pod, CreateRequest(), std::make_shared<const ContainerDetails>());
  EXPECT_FALSE(planned.MakeOutline().has_linux());
}

}  // namespace
}  // namespace resmgr::nri
