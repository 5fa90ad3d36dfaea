package faults_test

// postgresFaults are those of the source.
func postgresFaults() []fault {
	return nil
}
