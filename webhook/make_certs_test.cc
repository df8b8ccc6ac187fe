// SPDX-License-Identifier: Apache-2.0
// Runs scripts/make-webhook-certs as an operator does.
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "webhook/certificate.h"

namespace resmgr::webhook {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MakeCertsTest : public testing::Test {
 protected:
  bool Run(const std::string& arguments) {
    const std::string command = RESMGR_SOURCE_DIR "/scripts/make-webhook-certs -d " +
                                directory_.path() + " " + arguments + " >/dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  }

  std::string Read(const std::string& name) {
    return ReadFile(directory_.File(name), size_t{1} << 20).value_or("");
  }

  void ExpectYaml(const std::string& name) {
    const auto documents = ParseYamlDocuments(Read(name), name);
    ASSERT_TRUE(documents.ok()) << Describe(documents.status());
    EXPECT_EQ(documents->size(), 1u);
  }

  TempDir directory_;
};

TEST_F(MakeCertsTest, MakesWhatTheServerLoadsAndKeepsTheAuthority) {
  ASSERT_TRUE(Run("-n edge -s hook"));
  CertificateFiles files(directory_.File("tls.crt"), directory_.File("tls.key"));
  EXPECT_TRUE(files.Load().ok());
  ExpectYaml("secret.yaml");
  ExpectYaml("webhook-configuration.yaml");
  const std::string configuration = Read("webhook-configuration.yaml");
  EXPECT_THAT(configuration, HasSubstr("caBundle: LS0t"));
  EXPECT_THAT(configuration, HasSubstr("values: [kube-system, edge]"));
  EXPECT_THAT(configuration, HasSubstr("        namespace: edge\n        name: hook\n"));

  const std::string authority = Read("ca.crt");
  ASSERT_TRUE(Run("-n edge -s hook"));
  EXPECT_EQ(Read("ca.crt"), authority);
  EXPECT_TRUE(files.Changed());
  EXPECT_TRUE(files.Load().ok());
}

TEST_F(MakeCertsTest, NamesAnAddressOutsideOfTheCluster) {
  ASSERT_TRUE(Run("-u https://127.0.0.1:8443/mutate"));
  ExpectYaml("webhook-configuration.yaml");
  const std::string configuration = Read("webhook-configuration.yaml");
  EXPECT_THAT(configuration, HasSubstr("      url: https://127.0.0.1:8443/mutate\n"));
  EXPECT_THAT(configuration, Not(HasSubstr("service:")));
}

TEST_F(MakeCertsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(Run("-x"));
  EXPECT_FALSE(Run("surplus"));
  EXPECT_FALSE(Run("-u http://127.0.0.1/"));
}

}  // namespace
}  // namespace resmgr::webhook
