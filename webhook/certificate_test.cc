// SPDX-License-Identifier: Apache-2.0
#include "webhook/certificate.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace resmgr::webhook
