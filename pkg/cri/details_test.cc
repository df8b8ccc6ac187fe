// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/details.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/cri/security.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using testing::ElementsAre;

ContainerDetails Read(const v1::ContainerConfig& config, DetailSet parts = kAllDetails) {
  ContainerDetails details;
  EXPECT_TRUE(DecodeDetails(config.SerializeAsString(), "", parts, details));
  return details;
}

TEST(DetailsTest, ReadsTheImage) {
  v1::ContainerConfig config;
  config.mutable_image()->set_image("sha256:abc");
  config.mutable_image()->set_user_specified_image("registry.example/app:1");

  const ContainerDetails details = Read(config);

  EXPECT_EQ(details.image, "sha256:abc");
  EXPECT_EQ(details.specified_image, "registry.example/app:1");
  EXPECT_EQ(Read(config, {Detail::kMounts}).image, "");
}

TEST(DetailsTest, ReadsTheMountOfAnImage) {
  v1::ContainerConfig config;
  v1::Mount& mount = *config.add_mounts();
  mount.set_container_path("/model");
  mount.mutable_image()->set_image("sha256:def");

  EXPECT_THAT(Read(config).mounts,
              ElementsAre(Mount{.container_path = "/model", .image = "sha256:def"}));
}

TEST(DetailsTest, ReadsSecurity) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.set_privileged(true);
  context.mutable_namespace_options()->set_network(v1::NODE);
  context.mutable_namespace_options()->set_pid(v1::CONTAINER);
  context.mutable_namespace_options()->set_ipc(v1::TARGET);
  context.mutable_run_as_user();  // root: protobuf omits the 0
  context.mutable_run_as_group()->set_value(70'000);
  context.add_supplemental_groups(1);
  context.add_supplemental_groups(300);
  context.mutable_seccomp()->set_profile_type(v1::SecurityProfile::Localhost);
  context.mutable_seccomp()->set_localhost_ref("/profile.json");

  const ContainerSecurity expected{
      .privileged = true,
      .seccomp = SeccompProfile{.kind = SeccompProfile::Kind::kLocalhost, .path = "/profile.json"},
      .user = 0,
      .group = 70'000,
      .supplemental_groups = {1, 300},
      .network = NamespaceMode::kNode,
      .pid = NamespaceMode::kContainer,
      .ipc = NamespaceMode::kTarget};
  EXPECT_EQ(Read(config).security, expected);
  EXPECT_EQ(Read(config, {Detail::kResources}).security, ContainerSecurity());
}

TEST(DetailsTest, TheNewerFormOfASeccompProfileCounts) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.set_seccomp_profile_path("localhost//old.json");
  const SeccompProfile old{.kind = SeccompProfile::Kind::kLocalhost, .path = "/old.json"};
  EXPECT_EQ(Read(config).security.seccomp, old);

  context.mutable_seccomp()->set_profile_type(v1::SecurityProfile::Unconfined);
  EXPECT_EQ(Read(config).security.seccomp->kind, SeccompProfile::Kind::kUnconfined);
}

TEST(DetailsTest, GroupsMayComeOneByOne) {
  std::string message;
  {
    FieldWriter out(message);
    out.Number(8, 5);
    out.Number(8, 6);
  }
  ContainerSecurity security;
  EXPECT_TRUE(DecodeSecurity(message, security));
  EXPECT_THAT(security.supplemental_groups, ElementsAre(5, 6));
}

TEST(DetailsTest, ListsThatAreCutOffAreBroken) {
  for (const char* groups : {"\x80", "\x81\x82", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}) {
    std::string message;
    FieldWriter(message).Bytes(8, groups);
    ContainerSecurity security;
    EXPECT_FALSE(DecodeSecurity(message, security));
  }
}

TEST(DetailsTest, UnknownNumbersSayNothing) {
  v1::ContainerConfig config;
  auto& context = *config.mutable_linux()->mutable_security_context();
  context.mutable_namespace_options()->set_network(static_cast<v1::NamespaceMode>(9));
  context.mutable_seccomp()->set_profile_type(static_cast<v1::SecurityProfile::ProfileType>(9));

  EXPECT_EQ(Read(config).security.network, NamespaceMode::kPod);
  EXPECT_EQ(Read(config).security.seccomp->kind, SeccompProfile::Kind::kRuntimeDefault);
}

}  // namespace
}  // namespace resmgr
