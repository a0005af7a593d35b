package e2e_test
