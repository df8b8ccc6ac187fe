// SPDX-License-Identifier: Apache-2.0
#include "webhook/certificate.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "webhook/testing/test_certificate.h"

namespace resmgr::webhook {
namespace {

using ::testing::HasSubstr;

class CertificateTest : public testing::Test {
 protected:
  void Write(const std::string& certificate, const std::string& key) {
    ASSERT_TRUE(AtomicWriteFile(certificate_file_, certificate, 0644).ok());
    ASSERT_TRUE(AtomicWriteFile(key_file_, key, 0600).ok());
  }

  void ExpectUnusable(const std::string& part) {
    const Status status = files_.Load().status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(part));
  }

  TempDir directory_;
  std::string certificate_file_ = directory_.File("tls.crt");
  std::string key_file_ = directory_.File("tls.key");
  CertificateFiles files_{certificate_file_, key_file_};
};

TEST_F(CertificateTest, LoadsAPair) {
  const TestCertificate pair = MakeTestCertificate("one");
  Write(pair.certificate, pair.key);
  EXPECT_TRUE(files_.Load().ok());
  EXPECT_FALSE(files_.Changed());
}

TEST_F(CertificateTest, NoticesAChangeOfEitherFile) {
  const TestCertificate one = MakeTestCertificate("one");
  const TestCertificate two = MakeTestCertificate("two");
  Write(one.certificate, one.key);
  ASSERT_TRUE(files_.Load().ok());
  Write(two.certificate, one.key);
  EXPECT_TRUE(files_.Changed());
  ExpectUnusable("tls.key: it is not the key of ");
  EXPECT_FALSE(files_.Changed()) << "what failed is not tried again as it stands";
  Write(two.certificate, two.key);
  EXPECT_TRUE(files_.Changed());
  EXPECT_TRUE(files_.Load().ok());
}

TEST_F(CertificateTest, NamesTheFileThatIsNoGood) {
  ExpectUnusable("tls.crt");
  EXPECT_FALSE(files_.Changed());
  const TestCertificate pair = MakeTestCertificate("one");
  Write("no certificate", pair.key);
  ExpectUnusable("tls.crt: it holds no certificate");
  Write(pair.certificate, "no key");
  ExpectUnusable("tls.key: it holds no private key");
  Write(pair.certificate, pair.key);
  EXPECT_TRUE(files_.Load().ok());
}

// Runs scripts/make-webhook-certs as an operator does.

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
