package faults_test

// natsdFaults are those of one nats-server.
func natsdFaults() []fault {
	return []fault{
		{
			name: "kill -9 nats-server", does: "the server is killed, and started again after the outage",
			short: 1, often: true, inflict: killNATS,
		},
	}
}

func killNATS(tr *trial) {
	tr.NATS.Kill9(tr)
	tr.away()
	tr.NATS.Start(tr)
}
